#include "kube/json_read.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace loadline::kube {

using nlohmann::json;

const json* json_at(const json& root, JsonPath path) noexcept {
  const json* at = &root;
  for (const std::string_view key : path) {
    if (!at->is_object()) return nullptr;
    const auto& fields = at->get_ref<const json::object_t&>();
    const auto found = fields.find(key);
    if (found == fields.end()) return nullptr;
    at = &found->second;
  }
  return at;
}

std::optional<std::string_view> string_at(const json& root, JsonPath path) noexcept {
  const json* value = json_at(root, path);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get_ref<const std::string&>();
}

std::optional<std::int64_t> int_at(const json& root, JsonPath path) noexcept {
  const json* value = json_at(root, path);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  if (value->is_number_unsigned()) {
    const auto number = value->get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value->is_number_integer()) return value->get<std::int64_t>();
  const auto number = value->get<double>();
  constexpr double kLimit = 9.2233720368547748e18;
  if (!(number > -kLimit && number < kLimit) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::optional<double> number_at(const json& root, JsonPath path) noexcept {
  const json* value = json_at(root, path);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::optional<bool> bool_at(const json& root, JsonPath path) noexcept {
  const json* value = json_at(root, path);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

std::optional<TimePoint> time_at(const json& root, JsonPath path) noexcept {
  const auto text = string_at(root, path);
  if (!text) return std::nullopt;
  return parse_rfc3339(*text);
}

const json& array_at(const json& root, JsonPath path) noexcept {
  static const json kEmpty = json::array();
  const json* value = json_at(root, path);
  return value != nullptr && value->is_array() ? *value : kEmpty;
}

const json& object_at(const json& root, JsonPath path) noexcept {
  static const json kEmpty = json::object();
  const json* value = json_at(root, path);
  return value != nullptr && value->is_object() ? *value : kEmpty;
}

std::map<std::string, std::string> strings_at(const json& root, JsonPath path) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : object_at(root, path).get_ref<const json::object_t&>()) {
    if (value.is_string()) out.emplace(key, value.get_ref<const std::string&>());
  }
  return out;
}

Result<json> parse_json(std::string_view text, TooDeep deep) {
  bool pruned = false;
  const json::parser_callback_t within_depth = [&pruned](int depth, json::parse_event_t, json&) {
    const bool keep = depth <= kMaxJsonDepth;
    pruned = pruned || !keep;
    return keep;
  };
  try {
    json document = json::parse(text, within_depth);
    if (pruned && deep == TooDeep::Refuse)
      return Error::make(Error::Code::Invalid, "JSON nests deeper than 256 levels");
    return document;
  } catch (const json::exception& e) {
    return Error::make(Error::Code::Invalid, std::string("not JSON: ") + e.what());
  }
}

std::string json_text(const json& document) { return document.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace loadline::kube
