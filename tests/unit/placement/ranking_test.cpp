// Which of the pools that fit is best: cost to finish, time, unknown prices, spot and what was seen of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "placement/outlook.h"
#include "placement/plan.h"
#include "tests/unit/placement/fixtures.h"

namespace loadline::placement {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::SizeIs;

TEST(Plan, RanksByExpectedCostToFinish) {
  World world;
  world.pools = {pool("dear", {.price = "4.00"}), pool("cheap", {.price = "3.00"}),
                 pool("unknown", {.price = std::nullopt})};
  const Plan plan = world.planned();
  ASSERT_THAT(plan.ranked, SizeIs(3));
  EXPECT_EQ(plan.ranked[0].pool->name, "cheap");
  EXPECT_EQ(plan.ranked[1].pool->name, "dear");
  EXPECT_EQ(plan.ranked[1].reason, Reason::Fits);
  EXPECT_EQ(plan.ranked[2].pool->name, "unknown") << "an unknown price is not a low one";
}

TEST(Plan, RanksByTimeWhenThePolicySaysSo) {
  World world;
  world.pools = {pool("a100", {.price = "1.00"}), pool("h100", {.product = "NVIDIA-H100-80GB-HBM3", .price = "9.00"})};
  EXPECT_EQ(world.planned().ranked[0].pool->name, "a100");
  world.policies = {policy()};
  world.policies[0].spec.objective = api::ObjectiveSpec{};
  world.policies[0].spec.objective->type = api::PlacementObjective::Time;
  EXPECT_EQ(world.planned().ranked[0].pool->name, "h100");
  world.policies[0].spec.objective->type = api::PlacementObjective::Balanced;
  world.policies[0].spec.objective->valuePerHour = "0.01";
  EXPECT_EQ(world.planned().ranked[0].pool->name, "a100");
  world.policies[0].spec.objective->valuePerHour = "1000";
  EXPECT_EQ(world.planned().ranked[0].pool->name, "h100");
}

TEST(Plan, RanksByPricePerTokenWithoutALength) {
  World world;
  world.job.spec.training.tokens.reset();
  world.pools = {pool("dear", {.price = "4.00"}), pool("cheap", {.price = "3.00"})};
  const Plan plan = world.planned();
  EXPECT_EQ(plan.ranked[0].pool->name, "cheap");
  EXPECT_FALSE(plan.ranked[0].outlook->hours.has_value());
  EXPECT_FALSE(plan.ranked[0].outlook->cost.has_value());
  EXPECT_GT(*plan.ranked[0].outlook->cost_per_billion_tokens, 0);
}

TEST(Plan, RanksAUnknownGpuAfterKnownOnes) {
  World world;
  api::GPUPool odd = pool("odd", {.product = "NVIDIA-New", .price = "0.01"});
  odd.spec.gpu->memoryMiBPerGPU = 200000;
  world.pools = {pool("known"), odd};
  const Plan plan = world.planned();
  EXPECT_EQ(plan.ranked[0].pool->name, "known");
  EXPECT_FALSE(plan.ranked[1].outlook.has_value());
  EXPECT_THAT(plan.ranked[1].speed_unknown, HasSubstr("not in the table"));
}

TEST(Plan, NeverComparesCurrencies) {
  World world;
  world.pools = {pool("usd", {.price = "9.00"}), pool("jpy", {.price = "1.00", .currency = "JPY"})};
  const Plan plan = world.planned();
  EXPECT_EQ(plan.ranked[0].pool->name, "usd");
  EXPECT_THAT(plan.notes, testing::Contains(HasSubstr("JPY, USD: not compared")));
}

TEST(Plan, NeverLetsSpotThatIsDearerPerHourWinOnPrice) {
  World world;
  world.pools = {pool("on-demand", {.price = "2.00", .max_nodes = 9}),
                 pool("spot", {.capacity = api::CapacityType::Spot, .price = "2.00"})};
  world.pools[1].spec.interruptionsPerNodeHour = 1e-9;
  world.pools[0].spec.interruptionsPerNodeHour = 0.5;  // so that spot would be cheaper to finish
  const Plan plan = world.planned();
  EXPECT_LT(*on(plan, "spot").outlook->cost, *on(plan, "on-demand").outlook->cost);
  EXPECT_EQ(plan.ranked[0].pool->name, "on-demand");
}

TEST(Plan, TellsOfStalePrices) {
  World world;
  world.pools = {pool("a")};
  world.pools[0].spec.price->asOf = "2026-05-14";
  EXPECT_THAT(world.planned().notes, testing::Contains(HasSubstr("200 days old")));
}

TEST(Plan, LeavesSpotAfterTooManyInterruptionsAndStays) {
  World world;
  world.pools = {pool("spot", {.capacity = api::CapacityType::Spot, .price = "1.00"}),
                 pool("on-demand", {.price = "4.00"})};
  world.policies = {policy()};
  world.policies[0].spec.spot = api::SpotSpec{};
  world.policies[0].spec.spot->maxPreemptions = 3;
  world.history["spot"] = {2, 400};
  world.current_pool = "spot";
  EXPECT_EQ(world.planned().chosen()->pool->name, "spot");
  world.history["spot"] = {3, 400};
  EXPECT_EQ(world.planned().chosen()->pool->name, "on-demand");
  EXPECT_EQ(on(world.planned(), "spot").reason, Reason::Escalated);
  world.escalated_at = kNow - std::chrono::hours(5);
  world.current_pool = "on-demand";
  EXPECT_EQ(world.planned().chosen()->pool->name, "on-demand");
  world.policies[0].spec.spot->probeBack = "4h";
  EXPECT_EQ(world.planned().chosen()->pool->name, "spot") << "spot is tried again after probeBack";
}

TEST(Plan, LearnsFromInterruptions) {
  World world;
  world.pools = {pool("spot", {.capacity = api::CapacityType::Spot, .price = "2.40"}),
                 pool("on-demand", {.price = "4.00"})};
  EXPECT_EQ(world.planned().chosen()->pool->name, "spot");
  world.history["spot"] = {6, 1};  // six times within an hour
  EXPECT_EQ(world.planned().chosen()->pool->name, "on-demand");
}

TEST(Plan, StaysWhereItIsOnNearTies) {
  World world;
  world.pools = {pool("a", {.price = "4.00"}), pool("b", {.price = "4.10"})};
  EXPECT_EQ(world.planned().chosen()->pool->name, "a");
  world.current_pool = "b";
  EXPECT_EQ(world.planned().chosen()->pool->name, "b");
  world.pools[1].spec.price->perGPUHour = "5.00";
  EXPECT_EQ(world.planned().chosen()->pool->name, "a");
}

TEST(Plan, ChoosesTheNumberOfGpusWhenItIsOpen) {
  World world;
  world.pools = {pool("a", {.max_nodes = 8})};
  world.job.spec.gpus.reset();
  const Plan cheap = world.planned();
  ASSERT_NE(cheap.chosen(), nullptr);
  EXPECT_TRUE(cheap.gpus_chosen);
  world.policies = {policy()};
  world.policies[0].spec.objective = api::ObjectiveSpec{};
  world.policies[0].spec.objective->type = api::PlacementObjective::Time;
  EXPECT_GT(world.planned().chosen()->layout->gpus, cheap.chosen()->layout->gpus);
  world.policies[0].spec.limits = api::LimitsSpec{};
  world.policies[0].spec.limits->perJob = api::JobLimits{};
  world.policies[0].spec.limits->perJob->gpus = 16;
  EXPECT_LE(world.planned().chosen()->layout->gpus, 16);
}

TEST(Interruptions, AreThePriorThenWhatWasSeen) {
  Pool spot;
  spot.capacity_type = api::CapacityType::Spot;
  EXPECT_NEAR(interruptions_per_hour(spot, {}, 1, 8), 0.25 + 8 * 2e-5, 1e-12);
  EXPECT_NEAR(interruptions_per_hour(spot, {3, 4.0}, 1, 8), 4.0 / 8 + 8 * 2e-5, 1e-12);
  spot.reclaims_per_node_hour = 0.1;
  EXPECT_NEAR(interruptions_per_hour(spot, {}, 4, 32), 0.4 + 32 * 2e-5, 1e-12);
  Pool steady;
  EXPECT_NEAR(interruptions_per_hour(steady, {}, 1, 8), 8 * 2e-5, 1e-12);
}

}  // namespace
}  // namespace loadline::placement
