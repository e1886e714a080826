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

namespace {

Error invalid(std::string why) { return Error::make(Error::Code::Invalid, std::move(why)); }

/// Walks a text without building anything, and stops at the first thing that is wrong with it.
class BoundsCheck : public nlohmann::json_sax<json> {
 public:
  explicit BoundsCheck(std::size_t max_values) : max_values_(max_values) {}

  /// What is wrong; empty when nothing is.
  std::string wrong;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(std::int64_t) override { return value(); }
  bool number_unsigned(std::uint64_t) override { return value(); }
  bool number_float(double, const std::string&) override { return value(); }
  bool string(std::string&) override { return value(); }
  bool binary(json::binary_t&) override { return value(); }
  bool key(std::string&) override { return true; }
  bool start_object(std::size_t) override { return deeper(); }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_object() override { return higher(); }
  bool end_array() override { return higher(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    return stop(std::string("not JSON: ") + error.what());
  }

 private:
  bool value() {
    return ++values_ <= max_values_ || stop("JSON of more than " + std::to_string(max_values_) + " values");
  }
  bool deeper() { return value() && (++depth_ <= kMaxJsonDepth || stop("JSON nests deeper than 256 levels")); }
  bool higher() {
    --depth_;
    return true;
  }
  bool stop(std::string why) {
    wrong = std::move(why);
    return false;
  }

  const std::size_t max_values_;
  std::size_t values_ = 0;
  int depth_ = 0;
};

Result<json> parse_pruned(std::string_view text) {
  const json::parser_callback_t within_depth = [](int depth, json::parse_event_t, json&) {
    return depth <= kMaxJsonDepth;
  };
  try {
    return json::parse(text, within_depth);
  } catch (const json::exception& e) {
    return invalid(std::string("not JSON: ") + e.what());
  }
}

}  // namespace

Result<json> parse_json(std::string_view text, TooDeep deep) {
  return deep == TooDeep::Prune ? parse_pruned(text) : parse_json_within(text.size(), text);
}

Result<json> parse_json_within(std::size_t max_values, std::string_view text) {
  // Not by a callback that discards: with one the parser looks through all of an array after each of its objects.
  BoundsCheck check(max_values);
  if (!json::sax_parse(text, &check)) return invalid(check.wrong);
  try {
    return json::parse(text);
  } catch (const json::exception& e) {
    return invalid(std::string("not JSON: ") + e.what());
  }
}

std::string json_text(const json& document) { return document.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace loadline::kube
