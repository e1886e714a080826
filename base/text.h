// Text for people: one unit per quantity, everywhere the same. Also the few string
// helpers that several folders need.
//
// Thread-safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;
inline constexpr std::int64_t kGiB = 1024 * kMiB;

/// Bytes as GiB with `decimals` digits and no unit: "64.0".
[[nodiscard]] std::string gib_number(std::int64_t bytes, int decimals = 1);
/// Bytes with their unit: "64.0 GiB"; saturated input reads "more than 8 EiB".
[[nodiscard]] std::string gib(std::int64_t bytes, int decimals = 1);

/// A fixed-point number: fixed(3.14159, 2) is "3.14".
[[nodiscard]] std::string fixed(double value, int decimals);
/// A number with three significant digits for counts of parameters or tokens: "8.03e9".
[[nodiscard]] std::string scientific(double value);
/// Seconds in the unit a person would say: "45 s", "14 min", "31 h", "3.2 d".
[[nodiscard]] std::string duration_text(double seconds);

/// Joins with a separator.
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);
/// Cuts valid or invalid UTF-8 to at most `max_bytes`, on a code-point boundary, ending
/// in "..." when something was cut.
[[nodiscard]] std::string cut_utf8(std::string_view text, std::size_t max_bytes);

using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;
/// "2026-11-30T10:09:43Z"; to the second, as Kubernetes' metav1.Time.
[[nodiscard]] std::string rfc3339(TimePoint time);
/// "2026-11-30T10:09:43.123000Z", as metav1.MicroTime.
[[nodiscard]] std::string rfc3339_micro(TimePoint time);
/// Reads both forms above and numeric offsets; nothing otherwise.
[[nodiscard]] std::optional<TimePoint> parse_rfc3339(std::string_view text);

/// A Go/Kubernetes duration ("90s", "10m", "1h30m", "1.5h") in seconds; nothing when it is not one.
[[nodiscard]] std::optional<double> parse_duration(std::string_view text);
/// A Kubernetes quantity ("8", "2000m", "80Gi", "1e3") rounded up to a whole number;
/// nothing when it is not one. Saturates.
[[nodiscard]] std::optional<std::int64_t> parse_quantity(std::string_view text);
/// The same quantity in thousandths, for what may be fractional. Saturates.
[[nodiscard]] std::optional<std::int64_t> parse_quantity_milli(std::string_view text);

}  // namespace loadline
