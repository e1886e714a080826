// Writes any type that lists its fields as JSON: absent optionals and empty lists and maps
// are left out, an optional struct without fields is written as {}.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/fields.h"

namespace loadline::api {

template <class T>
[[nodiscard]] nlohmann::json write(const T& value);

namespace detail {

// Whether the field is to be left out.
template <class Owner, class T>
[[nodiscard]] bool is_unset(const T& member) {
  if constexpr (is_optional<T>) {
    return !member.has_value();
  } else if constexpr (is_list<T> || is_map<T>) {
    return member.empty();
  } else if constexpr (std::is_same_v<T, nlohmann::json>) {
    return member.is_null();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return PartOfKubernetes<Owner> && member.empty();
  }
  return false;
}

template <HasFields T>
[[nodiscard]] nlohmann::json write_object(const T& value) {
  nlohmann::json out = nlohmann::json::object();
  T::fields(value, [&out](const char* name, const auto& member) {
    if (!is_unset<T>(member)) out[name] = write(member);
  });
  return out;
}

template <class List>
[[nodiscard]] nlohmann::json write_list(const List& list) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& element : list) out.push_back(write(element));
  return out;
}

template <class Map>
[[nodiscard]] nlohmann::json write_map(const Map& map) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [key, element] : map) out[key] = write(element);
  return out;
}

}  // namespace detail

template <class T>
nlohmann::json write(const T& value) {
  if constexpr (is_optional<T>) {
    return value ? write(*value) : nlohmann::json();
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else if constexpr (is_list<T>) {
    return detail::write_list(value);
  } else if constexpr (is_map<T>) {
    return detail::write_map(value);
  } else if constexpr (HasFields<T>) {
    return detail::write_object(value);
  } else {
    return value;
  }
}

}  // namespace loadline::api
