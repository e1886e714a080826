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
