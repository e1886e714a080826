#include "operator/pool_status.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

api::TrainingJob job_with(const char* pool, const char* start, const char* end,
                          std::optional<api::AttemptCause> cause) {
  api::TrainingJob job;
  api::AttemptStatus attempt;
  attempt.pool = pool;
  attempt.nodes = 2;
  attempt.startTime = start;
  if (end != nullptr) attempt.endTime = end;
  attempt.cause = cause;
  job.status.attempts = {attempt};
  return job;
}

const TimePoint kNow = *parse_rfc3339("2026-11-30T12:00:00Z");

TEST(LearnedRate, IsLossesPerNodeHourAndOneMoreAsNoneYetIsNotNever) {
  const auto job = job_with("spot", "2026-11-28T00:00:00Z", "2026-11-29T02:00:00Z", api::AttemptCause::Preempted);
  EXPECT_DOUBLE_EQ(*learned_rate({job}, "spot", std::nullopt, kNow), (1.0 + 1) / (52 + 24));
}

TEST(LearnedRate, IsNotLearnedFromOneShortAttempt) {
  for (const auto cause : {api::AttemptCause::Preempted, api::AttemptCause::UserFailure}) {
    const auto job = job_with("spot", "2026-11-30T00:00:00Z", "2026-11-30T00:05:00Z", cause);
    EXPECT_FALSE(learned_rate({job}, "spot", std::nullopt, kNow));
  }
}

TEST(LearnedRate, StartsFromThePriorAndLeavesItSlowly) {
  const auto job = job_with("spot", "2026-11-30T00:00:00Z", "2026-11-30T05:00:00Z", api::AttemptCause::Preempted);
  EXPECT_DOUBLE_EQ(*learned_rate({job}, "spot", 0.05, kNow), (1 + 0.05 * 24) / (10 + 24));
}

TEST(LearnedRate, CountsQuietHoursOfARunningAttempt) {
  const auto job = job_with("spot", "2026-11-30T00:00:00Z", nullptr, std::nullopt);
  EXPECT_DOUBLE_EQ(*learned_rate({job}, "spot", std::nullopt, kNow), 1.0 / (24 + 24));
}

TEST(LearnedRate, IsUnknownWhereNothingRan) {
  EXPECT_FALSE(learned_rate({}, "spot", 0.05, kNow));
  EXPECT_FALSE(learned_rate({job_with("other", "2026-11-30T00:00:00Z", nullptr, std::nullopt)}, "spot", 0.05, kNow));
}

TEST(PoolStatus, IsWrittenOnceAndThenLeftAlone) {
  World world = two_pools_and_a_job();
  const kube::ObjectKey key{"", "spot"};
  for (int i = 0; i < 2; ++i) {
    const Decision decision =
        decide_pool(world.get(resources::kGPUPools, key), *cluster_facts(world, world.now), {}, world.now);
    ASSERT_EQ(decision.actions.size(), i == 0 ? 1U : 0U);
    for (const Action& action : decision.actions) ASSERT_TRUE(world.carry_out(action));
    world.pass(std::chrono::seconds(60));
  }
  const json status = world.at(resources::kGPUPools, key)["status"];
  EXPECT_EQ(status["gpusTotal"], 8);
  EXPECT_EQ(status["gpusFree"], 8);
  EXPECT_EQ(status["nodes"]["ready"], 1);
  EXPECT_EQ(status["conditions"][0]["type"], "Accepted");
}

TEST(PolicyStatus, SaysWhatIsWrongWithAPolicy) {
  World world;
  world.put(resources::kPlacementPolicies, {{"apiVersion", api::kApiVersion},
                                            {"kind", "PlacementPolicy"},
                                            {"metadata", {{"name", "p"}}},
                                            {"spec", {{"limits", {{"perJob", {{"totalCost", "a lot"}}}}}}}});
  const kube::ObjectKey key{"", "p"};
  const Decision decision = decide_policy(world.get(resources::kPlacementPolicies, key), world.now);
  ASSERT_EQ(decision.actions.size(), 1U);
  ASSERT_TRUE(world.carry_out(decision.actions[0]));
  EXPECT_EQ(world.at(resources::kPlacementPolicies, key)["status"]["conditions"][0]["status"], "False");
  EXPECT_TRUE(decide_policy(world.get(resources::kPlacementPolicies, key), world.now).actions.empty());
}

}  // namespace
}  // namespace loadline::controller
