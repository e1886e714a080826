// What policies and the job's own wishes change: enforcement, overrides, modes, precedence.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/explain.h"
#include "placement/plan.h"
#include "tests/unit/placement/fixtures.h"

namespace loadline::placement {
namespace {

using namespace testing_support;
using testing::HasSubstr;

TEST(Plan, LetsThroughWhatDoesNotFitOnlyWhenToldTo) {
  World world = one_pool();
  world.job.spec.model.preset = "llama-3.1-70b";
  EXPECT_EQ(world.planned().outcome, Outcome::Unplaceable);
  world.job.spec.memory = api::MemorySpec{};
  world.job.spec.memory->enforcement = api::Enforcement::Warn;
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
  EXPECT_TRUE(world.planned().chosen()->memory_warning);
  EXPECT_THAT(apply_warnings(world.request(), world.planned()),
              testing::Contains(HasSubstr("does not fit by the estimate")));
  world.policies = {policy()};
  world.policies[0].spec.sizing = api::PolicySizing{};
  world.policies[0].spec.sizing->enforcement = api::Enforcement::Enforce;
  EXPECT_EQ(world.planned().outcome, Outcome::Unplaceable) << "the policy's floor is higher than the job's wish";
}

TEST(Plan, NeverEnforcesALowerBound) {
  World world = one_pool();
  world.job.spec.model = api::ModelSpec{};
  world.job.spec.model.parameters = 7e10;
  world.job.spec.training.method = api::Method::Full;
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Placed) << outcome_message(world.request(), plan);
}

TEST(Plan, TakesAnOverrideWhereThePolicyAllowsIt) {
  World world = one_pool();
  world.job.spec.memory = api::MemorySpec{};
  world.job.spec.memory->overrideMiBPerGPU = 200000;
  EXPECT_EQ(on(world.planned(), "a").reason, Reason::InsufficientMemory);
  world.policies = {policy()};
  world.policies[0].spec.sizing = api::PolicySizing{};
  world.policies[0].spec.sizing->allowOverride = false;
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
  EXPECT_THAT(world.planned().notes, testing::Contains(HasSubstr("overrideMiBPerGPU is ignored")));
}

TEST(Plan, OnlyTellsWhatAPolicyInModeWarnWouldRefuse) {
  World world = one_pool();
  world.policies = {policy()};
  world.policies[0].spec.deny = api::PoolRules{};
  world.policies[0].spec.deny->pools = {"a"};
  world.policies[0].spec.mode = api::PolicyMode::Warn;
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Placed);
  EXPECT_THAT(plan.notes, testing::Contains(HasSubstr("pool is in the deny list (mode Warn, not enforced)")));
}

// A policy that speaks against all that a job on pool "a" of one_pool() can be.
api::PlacementPolicy strict_policy(api::PolicyMode mode) {
  api::PlacementPolicy out = policy();
  out.spec.mode = mode;
  out.spec.deny = api::PoolRules{};
  out.spec.deny->pools = {"a"};
  out.spec.limits = api::LimitsSpec{};
  out.spec.limits->perJob = api::JobLimits{};
  out.spec.limits->perJob->gpus = 2;
  out.spec.limits->perJob->costPerHour = "1";
  out.spec.sizing = api::PolicySizing{};
  out.spec.sizing->marginPercent = 100;
  out.spec.sizing->enforcement = api::Enforcement::Enforce;
  out.spec.sizing->allowOverride = false;
  return out;
}

class NotEnforced : public testing::TestWithParam<api::PolicyMode> {
 protected:
  static std::vector<std::string> told(const Plan& plan) {
    return GetParam() == api::PolicyMode::Warn ? plan.notes : plan.dry_run;
  }
  static std::string in_mode() { return "(mode " + std::string(api::name_of(GetParam())); }
};

INSTANTIATE_TEST_SUITE_P(Modes, NotEnforced, testing::Values(api::PolicyMode::Warn, api::PolicyMode::DryRun),
                         [](const auto& mode) { return std::string(api::name_of(mode.param)); });

TEST_P(NotEnforced, RefusesNothingAndSaysWhatWouldBeRefused) {
  World world = one_pool();
  world.policies = {strict_policy(GetParam())};
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Placed);
  EXPECT_THAT(told(plan),
              testing::Contains("if policy team were enforced " + in_mode() + "), the job would be refused"));
  EXPECT_THAT(told(plan),
              testing::Contains("a: by policy team: pool is in the deny list " + in_mode() + ", not enforced)"));
}

TEST_P(NotEnforced, LeavesMarginEnforcementAndOverrideToTheJob) {
  World world = one_pool();
  world.policies = {strict_policy(GetParam())};
  world.policies[0].spec.deny.reset();
  world.policies[0].spec.limits.reset();
  EXPECT_EQ(world.planned().chosen()->required_mib, one_pool().planned().chosen()->required_mib);
  EXPECT_THAT(told(world.planned()), testing::Contains(HasSubstr("the job would run on a: 1 node x 8 GPUs")))
      << "with another layout, under a margin of 100 %";
  world.job.spec.memory = api::MemorySpec{};
  world.job.spec.memory->overrideMiBPerGPU = 12345;
  EXPECT_EQ(world.planned().chosen()->required_mib, 12345);
  EXPECT_THAT(told(world.planned()), testing::Contains(HasSubstr("overrideMiBPerGPU is ignored")));
  world.job.spec.model.preset = "llama-3.1-70b";
  world.job.spec.memory->overrideMiBPerGPU.reset();
  world.job.spec.memory->enforcement = api::Enforcement::Warn;
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
  EXPECT_THAT(told(world.planned()), testing::Contains(HasSubstr("100 % margin")));
}

TEST_P(NotEnforced, LeavesJobsOnSpotAndTheirRanksAsTheyAre) {
  World world;
  world.pools = {pool("spot", {.capacity = api::CapacityType::Spot, .price = "1.00"}),
                 pool("on-demand", {.price = "4.00"})};
  world.policies = {policy()};
  world.policies[0].spec.mode = GetParam();
  world.policies[0].spec.spot = api::SpotSpec{};
  world.policies[0].spec.spot->maxPreemptions = 1;
  world.history["spot"] = {1, 400};
  world.current_pool = "spot";
  EXPECT_EQ(world.planned().chosen()->pool->name, "spot");
  EXPECT_THAT(told(world.planned()), testing::Contains(HasSubstr("the job would run on on-demand")));
  EXPECT_THAT(told(world.planned()), testing::Contains(HasSubstr("spot: spot was left")));
  world.escalated_at = kNow;
  world.current_pool = "on-demand";
  EXPECT_EQ(world.planned().chosen()->pool->name, "spot") << "also when it was moved before the mode was changed";
}

TEST_P(NotEnforced, DoesNotBoundTheNumberOfGpus) {
  World world;
  world.pools = {pool("a", {.max_nodes = 8})};
  world.job.spec.gpus.reset();
  const std::int64_t free_choice = world.planned().chosen()->layout->gpus;
  ASSERT_GT(free_choice, 1);
  world.policies = {policy()};
  world.policies[0].spec.mode = GetParam();
  world.policies[0].spec.limits = api::LimitsSpec{};
  world.policies[0].spec.limits->perJob = api::JobLimits{};
  world.policies[0].spec.limits->perJob->gpus = free_choice - 1;
  EXPECT_EQ(world.planned().chosen()->layout->gpus, free_choice);
  EXPECT_THAT(told(world.planned()), testing::Contains(HasSubstr("if policy team were enforced")));
}

TEST_P(NotEnforced, KeepsJobsWithoutACheckpointOffSpotAsWithoutAPolicy) {
  World world = one_pool();
  world.pools[0].spec.capacityType = api::CapacityType::Spot;
  world.job.spec.checkpoint.reset();
  world.policies = {policy()};
  world.policies[0].spec.mode = GetParam();
  EXPECT_THAT(on(world.planned(), "a").detail, HasSubstr("required unless a policy says otherwise"));
}

TEST(DryRun, PlansAsWithoutAPolicyAndTellsInStatusOnly) {
  World world = one_pool();
  const Plan without = world.planned();
  world.policies = {strict_policy(api::PolicyMode::DryRun)};
  world.policies[0].spec.objective = api::ObjectiveSpec{};
  world.policies[0].spec.objective->type = api::PlacementObjective::Time;
  world.policies[0].spec.checkpoint = api::PolicyCheckpoint{};
  world.policies[0].spec.checkpoint->defaultClass = "fast";
  world.policies[0].spec.checkpoint->retain = api::RetainPolicy::Delete;
  world.policies[0].spec.checkpoint->maxInterval = "2m";
  const Plan plan = world.planned();
  EXPECT_EQ(plan.policy.objective, api::PlacementObjective::Cost);
  EXPECT_EQ(plan.checkpoint.storage_class, without.checkpoint.storage_class);
  EXPECT_EQ(plan.checkpoint.retain, without.checkpoint.retain);
  EXPECT_EQ(plan.chosen()->interval.seconds, without.chosen()->interval.seconds);
  EXPECT_EQ(apply_warnings(world.request(), plan), apply_warnings(world.request(), without));
  EXPECT_THAT(placement_explanation(world.request(), plan), testing::Contains(HasSubstr("mode DryRun, not enforced")));
  EXPECT_THAT(placement_status(world.request(), plan).policy->rules,
              testing::IsSupersetOf({"objective Time", "mode DryRun", "denied: a"}));
}

TEST(DryRun, TellsWhatItsDefaultsForCheckpointsWouldChange) {
  World world = one_pool();
  world.policies = {policy()};
  world.policies[0].spec.mode = api::PolicyMode::DryRun;
  world.policies[0].spec.checkpoint = api::PolicyCheckpoint{};
  world.policies[0].spec.checkpoint->defaultClass = "fast";
  world.policies[0].spec.checkpoint->maxInterval = "2m";
  EXPECT_THAT(world.planned().dry_run, testing::ElementsAre(HasSubstr("in fast, one write every 2 min")));
}

TEST(Warn, StillGivesDefaults) {
  World world = one_pool();
  world.policies = {policy()};
  world.policies[0].spec.mode = api::PolicyMode::Warn;
  world.policies[0].spec.objective = api::ObjectiveSpec{};
  world.policies[0].spec.objective->type = api::PlacementObjective::Time;
  world.policies[0].spec.checkpoint = api::PolicyCheckpoint{};
  world.policies[0].spec.checkpoint->defaultClass = "fast";
  world.policies[0].spec.checkpoint->maxInterval = "2m";
  const Plan plan = world.planned();
  EXPECT_EQ(plan.policy.objective, api::PlacementObjective::Time);
  EXPECT_EQ(plan.checkpoint.storage_class, "fast");
  EXPECT_EQ(plan.chosen()->interval.seconds, 120);
  EXPECT_THAT(plan.notes, testing::IsEmpty()) << "what counts is not told as if it did not";
}

TEST(Warn, IsNeverStricterThanEnforce) {
  World world = one_pool();
  world.pools[0].spec.capacityType = api::CapacityType::Spot;
  world.job.spec.checkpoint.reset();
  world.policies = {policy()};
  world.policies[0].spec.spot = api::SpotSpec{};
  world.policies[0].spec.spot->requireCheckpoint = false;
  world.policies[0].spec.sizing = api::PolicySizing{};
  world.policies[0].spec.sizing->marginPercent = 0;
  const Plan enforced = world.planned();
  world.policies[0].spec.mode = api::PolicyMode::Warn;
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
  EXPECT_EQ(world.planned().chosen()->required_mib, enforced.chosen()->required_mib);
}

TEST(Policy, WithTheHighestPrecedenceAppliesAndTiesGoByName) {
  World world = one_pool();
  world.policies = {policy("b"), policy("a"), policy("c")};
  EXPECT_EQ(effective_policy(world.job, world.policies).name, "a");
  world.policies[2].spec.precedence = 5;
  EXPECT_EQ(effective_policy(world.job, world.policies).name, "c");
  world.policies[2].spec.selector = api::PolicySelector{};
  world.policies[2].spec.selector->namespaces = {"elsewhere"};
  EXPECT_EQ(effective_policy(world.job, world.policies).name, "a");
}

}  // namespace
}  // namespace loadline::placement
