// "Too large" stays large: arithmetic on user numbers neither wraps nor turns negative.
#include "base/saturating.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace loadline {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(Saturating, StaysLarge) {
  EXPECT_EQ(sat_add(kSaturated, 1), kSaturated);
  EXPECT_EQ(sat_add(kLeast, -1), kLeast);
  EXPECT_EQ(sat_add(kSaturated, kLeast), -1);
  EXPECT_EQ(sat_mul(kSaturated, 2), kSaturated);
  EXPECT_EQ(sat_mul(kSaturated, -2), kLeast);
  EXPECT_EQ(sat_mul(kLeast, -1), kSaturated);
  EXPECT_EQ(sat_mul(kSaturated, 0), 0);
}

TEST(Saturating, ManyGpusTimesManyNodesIsNotFew) {
  EXPECT_EQ(sat_product(2147483647, 2147483647, 8), kSaturated);
  EXPECT_EQ(sat_product(1 << 20, 1 << 20, 1 << 20, 1 << 20), kSaturated);
  EXPECT_EQ(sat_product(2, 3, 4), 24);
}

TEST(Saturating, ReadsDoublesOfAnySize) {
  EXPECT_EQ(sat_from_double(8.03e9), 8030000000);
  EXPECT_EQ(sat_from_double(1e300), kSaturated);
  EXPECT_EQ(sat_from_double(-1e300), kLeast);
  EXPECT_EQ(sat_from_double(std::numeric_limits<double>::infinity()), kSaturated);
  EXPECT_EQ(sat_from_double(std::nan("")), 0);
  EXPECT_EQ(sat_from_double(9.2233720368547748e18), kSaturated);
  EXPECT_EQ(sat_from_double(-0.9), 0);
}

TEST(Saturating, DividesUpwards) {
  EXPECT_EQ(ceil_div(0, 8), 0);
  EXPECT_EQ(ceil_div(1, 8), 1);
  EXPECT_EQ(ceil_div(8, 8), 1);
  EXPECT_EQ(ceil_div(9, 8), 2);
  EXPECT_EQ(ceil_div(kSaturated, 1), kSaturated);
}

RC_GTEST_PROP(Saturating, AgreesWithWiderArithmetic, (std::int64_t a, std::int64_t b)) {
  // Full-range factors, since generated numbers are mostly small.
  const auto shift = *rc::gen::inRange(0, 40);
  a = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << static_cast<unsigned>(shift));
  __extension__ using Wide = __int128;
  const auto clamp = [](Wide value) {
    if (value > kSaturated) return kSaturated;
    return value < kLeast ? kLeast : static_cast<std::int64_t>(value);
  };
  RC_ASSERT(sat_add(a, b) == clamp(static_cast<Wide>(a) + b));
  RC_ASSERT(sat_mul(a, b) == clamp(static_cast<Wide>(a) * b));
}

}  // namespace
}  // namespace loadline
