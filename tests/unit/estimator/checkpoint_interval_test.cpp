#include "estimator/checkpoint_interval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace loadline::estimator {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Row {
  double write, mean, exact;
};

class OptimalInterval : public testing::TestWithParam<Row> {};

TEST_P(OptimalInterval, IsTheExactMinimiserOfDalysWallTime) {
  EXPECT_NEAR(optimal_interval(GetParam().write, GetParam().mean), GetParam().exact, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Published, OptimalInterval,
                         testing::Values(Row{30, 86400, 2256.9}, Row{60, 3600, 617.9}, Row{300, 3600, 1276.9},
                                         Row{1800, 3600, 2513.8}));

TEST(OptimalInterval, IsZeroWithoutWritesAndEndlessWithoutInterruptions) {
  EXPECT_EQ(optimal_interval(0, 3600), 0);
  EXPECT_EQ(optimal_interval(-5, 3600), 0);
  EXPECT_EQ(optimal_interval(60, 0), 0);
  EXPECT_EQ(optimal_interval(60, kInfinity), kInfinity);
}

RC_GTEST_PROP(OptimalInterval, IsNotBeatenByItsNeighbours, ()) {
  const double write = *rc::gen::inRange(1, 5000);
  const double mean = *rc::gen::inRange(60, 5000000);
  const double work = 1e9;
  const double best = optimal_interval(write, mean);
  const double wall = expected_wall(work, best, write, 0, mean);
  RC_ASSERT(best > 0);
  RC_ASSERT(best <= mean);
  RC_ASSERT(wall <= expected_wall(work, best * 1.01, write, 0, mean) * (1 + 1e-9));
  RC_ASSERT(wall <= expected_wall(work, best * 0.99, write, 0, mean) * (1 + 1e-9));
}

TEST(ExpectedWall, AddsOnlyTheWritesWhenNothingInterrupts) {
  EXPECT_DOUBLE_EQ(expected_wall(36000, 3600, 36, 300, kInfinity), 36000 * 1.01);
}

TEST(ExpectedWall, IsDalysFormula) {
  // M e^(R/M) (e^((tau+delta)/M) - 1) work/tau with M 3600, R 600, tau 617.9, delta 60, work 36000.
  const double expected = 3600 * std::exp(600.0 / 3600) * (std::exp(677.9 / 3600) - 1) * 36000 / 617.9;
  EXPECT_NEAR(expected_wall(36000, 617.9, 60, 600, 3600), expected, 1e-6);
}

TEST(ExpectedWall, IsEndlessWhenWritesTakeLongerThanTheGangLives) {
  EXPECT_TRUE(std::isinf(expected_wall(36000, 3600, 60, 300, 0)));
  EXPECT_GT(expected_wall(36000, 360, 360, 300, 30), 36000 * 1e6);
}

RC_GTEST_PROP(ExpectedWall, GrowsWithRestartsAndShrinksWithLife, ()) {
  const double mean = *rc::gen::inRange(600, 1000000);
  const double restart = *rc::gen::inRange(0, 3600);
  RC_ASSERT(expected_wall(1e6, 600, 30, restart, mean) <= expected_wall(1e6, 600, 30, restart + 60, mean));
  RC_ASSERT(expected_wall(1e6, 600, 30, restart, mean) >= expected_wall(1e6, 600, 30, restart, mean * 2));
  RC_ASSERT(expected_wall(1e6, 600, 30, restart, mean) >= 1e6);
}

IntervalInputs typical() {
  IntervalInputs inputs;
  inputs.checkpoint_bytes = 104.7 * 1024 * 1024 * 1024;
  inputs.write_mib_per_s = 2600;
  inputs.mean_between_seconds = 2.6 * 3600;
  return inputs;
}

TEST(CheckpointInterval, SaysWhyInOneSentence) {
  const Interval interval = checkpoint_interval(typical());
  EXPECT_EQ(interval.why,
            "every 14 min: Daly's optimum for 41 s of blocking write and one interruption of this gang per 2.6 h");
  EXPECT_NEAR(interval.seconds, optimal_interval(interval.write_seconds, 9360), 1e-9);
}

TEST(CheckpointInterval, KeepsWhatTheUserAskedForAndNamesTheOptimum) {
  IntervalInputs inputs = typical();
  inputs.user_seconds = 1800;
  const Interval interval = checkpoint_interval(inputs);
  EXPECT_EQ(interval.seconds, 1800);
  EXPECT_THAT(interval.why, StartsWith("every 30 min: as asked; Daly's optimum would be 14 min"));
}

TEST(CheckpointInterval, NeverExceedsThePolicysLongest) {
  IntervalInputs inputs = typical();
  inputs.longest_seconds = 600;
  EXPECT_EQ(checkpoint_interval(inputs).seconds, 600);
  inputs.user_seconds = 1800;
  EXPECT_EQ(checkpoint_interval(inputs).seconds, 600);
  EXPECT_THAT(checkpoint_interval(inputs).why, HasSubstr("30 min was asked"));
}

TEST(CheckpointInterval, WritesNowAndThenEvenWhenNothingInterrupts) {
  IntervalInputs inputs = typical();
  inputs.mean_between_seconds = kInfinity;
  EXPECT_EQ(checkpoint_interval(inputs).seconds, kLongestIntervalSeconds);
  EXPECT_THAT(checkpoint_interval(inputs).why, HasSubstr("no interruptions expected"));
}

TEST(CheckpointInterval, SaysWhenTheStoragesSpeedIsAssumed) {
  IntervalInputs inputs = typical();
  inputs.write_mib_per_s.reset();
  const Interval interval = checkpoint_interval(inputs);
  EXPECT_NEAR(interval.write_seconds, 104.7 * 1024 / 500, 1e-6);
  EXPECT_THAT(interval.why, HasSubstr("500 MiB/s assumed"));
}

TEST(CheckpointInterval, DoesNotWriteAllTheTimeForTinyCheckpoints) {
  IntervalInputs inputs = typical();
  inputs.checkpoint_bytes = 1024;
  EXPECT_EQ(checkpoint_interval(inputs).seconds, kShortestIntervalSeconds);
}

}  // namespace
}  // namespace loadline::estimator
