// Quantities and durations as Kubernetes writes them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/saturating.h"
#include "base/text.h"

namespace loadline {
namespace {

struct QuantityCase {
  std::string_view text;
  std::optional<std::int64_t> whole, milli;
};

TEST(Quantity, IsReadAsKubernetesReadsIt) {
  constexpr std::optional<std::int64_t> kNone;
  const QuantityCase cases[] = {
      {"8", 8, 8000},
      {"0", 0, 0},
      {"1500m", 2, 1500},
      {"2000m", 2, 2000},
      {"1m", 1, 1},
      {"0.5", 1, 500},
      {"1e0", 1, 1000},
      {"1e3", 1000, 1000000},
      {"1E3", 1000, 1000000},
      {"1.5Gi", 1610612736, 1610612736000},
      {"80Gi", 85899345920, 85899345920000},
      {"1k", 1000, 1000000},
      {"1Ki", 1024, 1024000},
      {"2E", 2000000000000000000, kSaturated},
      {"9Ei", kSaturated, kSaturated},
      {"-3", -3, -3000},
      {"+3", 3, 3000},
      {"-9Ei", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::min()},
      {"500n", 1, 1},
      {"", kNone, kNone},
      {"-", kNone, kNone},
      {"Gi", kNone, kNone},
      {"8 Gi", kNone, kNone},
      {"8gi", kNone, kNone},
      {"8GiB", kNone, kNone},
      {"1,5", kNone, kNone},
      {"0x10", kNone, kNone},
      {"nan", kNone, kNone},
      {"inf", kNone, kNone},
      {"--3", kNone, kNone},
      {"auto", kNone, kNone},
  };
  for (const QuantityCase& each : cases) {
    EXPECT_EQ(parse_quantity(each.text), each.whole) << each.text;
    EXPECT_EQ(parse_quantity_milli(each.text), each.milli) << each.text;
  }
}

RC_GTEST_PROP(Quantity, InThousandthsIsExact, ()) {
  const auto milli = *rc::gen::inRange<std::int64_t>(0, 1000000000);
  RC_ASSERT(parse_quantity_milli(std::to_string(milli) + "m") == milli);
  RC_ASSERT(parse_quantity(std::to_string(milli) + "m") == ceil_div(milli, 1000));
  const std::string fraction = std::to_string(1000 + milli % 1000).substr(1);
  RC_ASSERT(parse_quantity_milli(std::to_string(milli / 1000) + "." + fraction) == milli);
}

RC_GTEST_PROP(Quantity, OfAnyTextIsANumberOrNothing, (const std::string& text)) {
  RC_ASSERT(parse_quantity(text).has_value() == parse_quantity_milli(text).has_value());
}

struct DurationCase {
  std::string_view text;
  std::optional<double> seconds;
};

TEST(Duration, IsReadAsGoWritesIt) {
  constexpr std::optional<double> kNone;
  const DurationCase cases[] = {{"90s", 90},     {"10m", 600},   {"1h30m", 5400},  {"1.5h", 5400},   {"250ms", 0.25},
                                {"0", 0},        {"0s", 0},      {"1h0m0s", 3600}, {"168h", 604800}, {"", kNone},
                                {"5", kNone},    {"-5m", kNone}, {"1d", kNone},    {"m", kNone},     {"10 m", kNone},
                                {"1h30", kNone}, {"auto", kNone}};
  for (const DurationCase& each : cases) EXPECT_EQ(parse_duration(each.text), each.seconds) << each.text;
}

}  // namespace
}  // namespace loadline
