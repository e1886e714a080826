#include <array>
#include <charconv>
#include <cmath>

#include "base/saturating.h"
#include "base/text.h"

namespace loadline {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};

constexpr std::array<Suffix, 16> kQuantitySuffixes{{{"n", 1e-9},
                                                    {"u", 1e-6},
                                                    {"m", 1e-3},
                                                    {"", 1},
                                                    {"k", 1e3},
                                                    {"M", 1e6},
                                                    {"G", 1e9},
                                                    {"T", 1e12},
                                                    {"P", 1e15},
                                                    {"E", 1e18},
                                                    {"Ki", 1024.0},
                                                    {"Mi", 1048576.0},
                                                    {"Gi", 1073741824.0},
                                                    {"Ti", 1099511627776.0},
                                                    {"Pi", 1125899906842624.0},
                                                    {"Ei", 1152921504606846976.0}}};

constexpr std::array<Suffix, 6> kDurationUnits{
    {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"s", 1}, {"m", 60}, {"h", 3600}}};

// A plain decimal at the front of `text`; the rest goes to `rest`.
std::optional<double> leading_decimal(std::string_view text, std::string_view& rest, bool exponent) {
  if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '.')) return std::nullopt;
  double value = 0;
  const auto format = exponent ? std::chars_format::general : std::chars_format::fixed;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, format);
  if (error != std::errc()) return std::nullopt;
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<double> quantity(std::string_view text) {
  double sign = 1;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    sign = text.front() == '-' ? -1 : 1;
    text.remove_prefix(1);
  }
  std::string_view rest;
  const auto number = leading_decimal(text, rest, /*exponent=*/true);
  if (!number) return std::nullopt;
  for (const Suffix& suffix : kQuantitySuffixes) {
    if (rest == suffix.text) return sign * *number * suffix.factor;
  }
  return std::nullopt;
}

// Rounds up, but not for the sake of what binary fractions cannot hold: 2639 x 1e-3 x 1e3 is a hair above 2639.
double round_up(double value) {
  const double nearest = std::nearbyint(value);
  return std::abs(value - nearest) <= 1e-12 * std::abs(nearest) ? nearest : std::ceil(value);
}

}  // namespace

std::optional<double> parse_duration(std::string_view text) {
  if (text == "0") return 0;
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    std::string_view rest;
    const auto number = leading_decimal(text, rest, /*exponent=*/false);
    if (!number) return std::nullopt;
    bool known = false;
    for (const Suffix& unit : kDurationUnits) {
      if (!rest.starts_with(unit.text)) continue;
      total += *number * unit.factor;
      rest.remove_prefix(unit.text.size());
      known = true;
      break;
    }
    if (!known) return std::nullopt;
    text = rest;
  }
  return total;
}

std::optional<std::int64_t> parse_quantity(std::string_view text) {
  const auto value = quantity(text);
  if (!value) return std::nullopt;
  return sat_from_double(round_up(*value));
}

std::optional<std::int64_t> parse_quantity_milli(std::string_view text) {
  const auto value = quantity(text);
  if (!value) return std::nullopt;
  return sat_from_double(round_up(*value * 1000));
}

}  // namespace loadline
