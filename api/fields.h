// What the types of this folder have in common, as concepts: the machinery by which
// reading, writing and the check against the CRD schema walk any of them.
//
// Thread-safety: compile-time only.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/enums.h"

namespace loadline::api {

struct IgnoreField {
  template <class Member>
  void operator()(const char* /*name*/, Member& /*member*/) const {}
};

/// A struct that lists its fields; see api/meta.h.
template <class T>
concept HasFields = requires(T& value) {
  T::fields(value, IgnoreField{});
};

/// A struct of Kubernetes of which we list only a part: further fields are not ours to judge, and an empty string
/// means unset.
template <class T>
concept PartOfKubernetes = HasFields<T> && requires {
  T::kPartOfKubernetes;
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;

template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;

/// Whether `T` may not be without this field: its `kRequired` names it. The CRD schema has the same list.
template <class T>
[[nodiscard]] constexpr bool is_required(std::string_view field) {
  if constexpr (requires { T::kRequired; }) {
    return std::find(T::kRequired.begin(), T::kRequired.end(), field) != T::kRequired.end();
  }
  return false;
}

/// The JSON names of a type's fields, in the order in which it lists them.
template <HasFields T>
[[nodiscard]] std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  T value{};
  T::fields(value, [&names](const char* name, auto& /*member*/) { names.emplace_back(name); });
  return names;
}

/// The YAML words of an enum.
template <class E>
[[nodiscard]] std::vector<std::string_view> enum_words() {
  std::vector<std::string_view> words;
  for (const auto& [value, text] : EnumNames<E>::table) words.push_back(text);
  return words;
}

}  // namespace loadline::api
