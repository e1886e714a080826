// Reading foreign JSON without trust: a missing field, or one of another type, is simply absent.
// Nothing here throws, whatever the document holds.
//
// Thread-safety: pure functions. Ownership: returned pointers and views live as long as the document.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"

namespace loadline::kube {

/// One step per key, from the root: {"status", "podIP"}.
using JsonPath = std::initializer_list<std::string_view>;

/// The value at `path`, or nullptr.
[[nodiscard]] const nlohmann::json* json_at(const nlohmann::json& root, JsonPath path) noexcept;
[[nodiscard]] std::optional<std::string_view> string_at(const nlohmann::json& root, JsonPath path) noexcept;
/// A whole number in the range of int64; also when it was written as 8.0 or 8e0.
[[nodiscard]] std::optional<std::int64_t> int_at(const nlohmann::json& root, JsonPath path) noexcept;
[[nodiscard]] std::optional<double> number_at(const nlohmann::json& root, JsonPath path) noexcept;
[[nodiscard]] std::optional<bool> bool_at(const nlohmann::json& root, JsonPath path) noexcept;
[[nodiscard]] std::optional<TimePoint> time_at(const nlohmann::json& root, JsonPath path) noexcept;
/// The array at `path`, or an empty one.
[[nodiscard]] const nlohmann::json& array_at(const nlohmann::json& root, JsonPath path) noexcept;
/// The object at `path`, or an empty one.
[[nodiscard]] const nlohmann::json& object_at(const nlohmann::json& root, JsonPath path) noexcept;
/// The string entries of the object at `path`: labels, annotations, node selectors.
[[nodiscard]] std::map<std::string, std::string> strings_at(const nlohmann::json& root, JsonPath path);

/// Levels a document may nest. Copying and writing recurse, so depth is stack.
inline constexpr int kMaxJsonDepth = 256;
/// What becomes of values that lie deeper.
enum class TooDeep {
  Refuse,  ///< the whole document is an error
  Prune,   ///< they are left out: one user's odd object must not hide everybody's list
};
/// Parses one JSON document. Error: Code::Invalid.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text, TooDeep deep = TooDeep::Refuse);
/// The same for a text from anybody: one with more than `max_values` values is refused before any of it is built. In
/// memory a value takes 100 bytes and more, however short its text.
[[nodiscard]] Result<nlohmann::json> parse_json_within(std::size_t max_values, std::string_view text);
/// Compact JSON; bytes that are not UTF-8 become U+FFFD. Precondition: at most kMaxJsonDepth levels.
[[nodiscard]] std::string json_text(const nlohmann::json& document);

}  // namespace loadline::kube
