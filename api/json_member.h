// Reading foreign JSON without trust: what is missing, or of another type, reads as nothing.
//
// Thread-safety: pure functions. Ownership: a reference lives as long as the document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace loadline::api {

/// A member of any JSON value; null when there is none or `object` is not an object.
[[nodiscard]] inline const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

/// A string's text; empty for any other value.
[[nodiscard]] inline std::string text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// A member that is a list; an empty one when it is missing or something else.
[[nodiscard]] inline const nlohmann::json& list_member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kEmpty = nlohmann::json::array();
  const nlohmann::json& value = member(object, key);
  return value.is_array() ? value : kEmpty;
}

/// A member that is an object; an empty one when it is missing or something else.
[[nodiscard]] inline const nlohmann::json& object_member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const nlohmann::json& value = member(object, key);
  return value.is_object() ? value : kEmpty;
}

}  // namespace loadline::api
