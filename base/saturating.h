// Saturating arithmetic on user numbers: a product that would overflow becomes the
// largest value of the type, so that "too large" stays large and never turns small or
// negative.
#pragma once

#include <cstdint>
#include <limits>

namespace loadline {

inline constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

/// a + b, clamped to the range of int64.
[[nodiscard]] constexpr std::int64_t sat_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t out = 0;
  if (!__builtin_add_overflow(a, b, &out)) return out;
  return a > 0 ? kSaturated : std::numeric_limits<std::int64_t>::min();
}

/// a * b, clamped to the range of int64.
[[nodiscard]] constexpr std::int64_t sat_mul(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t out = 0;
  if (!__builtin_mul_overflow(a, b, &out)) return out;
  return (a > 0) == (b > 0) ? kSaturated : std::numeric_limits<std::int64_t>::min();
}

/// Product of any number of factors, saturating at each step.
template <class... Rest>
[[nodiscard]] constexpr std::int64_t sat_product(std::int64_t first, Rest... rest) noexcept {
  ((first = sat_mul(first, static_cast<std::int64_t>(rest))), ...);
  return first;
}

/// ceil(a / b) for a >= 0, b > 0.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// A double as int64, clamped; NaN becomes 0.
[[nodiscard]] constexpr std::int64_t sat_from_double(double v) noexcept {
  if (v != v) return 0;
  if (v >= 9.2233720368547748e18) return kSaturated;
  if (v <= -9.2233720368547748e18) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(v);
}

}  // namespace loadline
