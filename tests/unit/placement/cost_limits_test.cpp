// Limits on cost: held to by pools whose cost is known in the policy's currency, and by no others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/explain.h"
#include "placement/plan.h"
#include "tests/unit/placement/fixtures.h"

namespace loadline::placement {
namespace {

using namespace testing_support;
using testing::Contains;
using testing::HasSubstr;

/// Pool "a" at 32 USD per hour for eight GPUs and pool "b" of the same GPUs, under a policy with limits to be set.
class CostLimits : public testing::Test {
 protected:
  CostLimits() {
    world.pools = {pool("a", {.price = "4.00"}), pool("b", {.price = std::nullopt})};
    world.policies = {policy()};
    world.policies[0].spec.limits = api::LimitsSpec{};
    world.policies[0].spec.limits->perJob = api::JobLimits{};
    world.policies[0].spec.limits->perNamespace = api::NamespaceLimits{};
  }
  api::JobLimits& per_job() { return *world.policies[0].spec.limits->perJob; }
  api::NamespaceLimits& per_namespace() { return *world.policies[0].spec.limits->perNamespace; }

  World world;
};

TEST_F(CostLimits, AreNotEscapedThroughAPoolWithoutAPrice) {
  per_job().costPerHour = "10";
  const Plan plan = world.planned();
  EXPECT_EQ(plan.chosen(), nullptr);
  EXPECT_EQ(on(plan, "a").reason, Reason::LimitExceeded);
  EXPECT_EQ(on(plan, "b").detail,
            "price not known: what policy team allows (10.00 USD per hour) cannot be held to; set spec.price of the "
            "GPUPool");
  EXPECT_EQ(plan.outcome, Outcome::Waiting) << "the price may yet be given";
}

TEST_F(CostLimits, AreNotEscapedThroughAnotherCurrency) {
  per_job().totalCost = "1";
  per_namespace().costPerHour = "250";
  world.pools[1] = pool("b", {.price = "0.01", .currency = "EUR"});
  const Plan plan = world.planned();
  EXPECT_EQ(plan.chosen(), nullptr);
  EXPECT_EQ(on(plan, "b").reason, Reason::UnknownCost);
  EXPECT_EQ(
      on(plan, "b").detail,
      "price is in EUR: what policy team allows (1.00 USD per job, 250 USD per hour and namespace) cannot be held "
      "to; set spec.price of the GPUPool in USD");
}

TEST_F(CostLimits, SayWhyAPriceDoesNotCount) {
  per_job().costPerHour = "10";
  world.pools[1] = pool("b", {.price = "cheap"});
  EXPECT_THAT(on(world.planned(), "b").detail, HasSubstr("price not known (price \"cheap\" is not a decimal"));
}

TEST_F(CostLimits, LeavePoolsWithoutAPriceAloneWhereThereAreNone) {
  per_job().gpus = 8;
  EXPECT_EQ(on(world.planned(), "b").verdict, Verdict::Fits);
}

TEST_F(CostLimits, AreKeptByWhatCostsNothingInAnyCurrency) {
  per_job().costPerHour = "10";
  world.pools[1] = pool("b", {.price = "0", .currency = "EUR"});
  world.pools[1].spec.price->owned = true;
  EXPECT_EQ(world.planned().chosen()->pool->name, "b");
}

TEST_F(CostLimits, HoldPerHourWhereTheSpeedIsUnknown) {
  api::GPUPool odd = pool("b", {.product = "NVIDIA-New", .price = "9.00"});
  odd.spec.gpu->memoryMiBPerGPU = 200000;
  world.pools = {odd};
  per_job().costPerHour = "10";
  EXPECT_THAT(on(world.planned(), "b").detail, HasSubstr("72.00 USD per hour, policy team allows 10.00 USD"));
  per_job().costPerHour.reset();
  per_job().totalCost = "5000";
  EXPECT_EQ(
      on(world.planned(), "b").detail,
      "time unknown (the speed of its GPU is not in the table): what policy team allows (5000 USD per job) cannot "
      "be held to");
}

TEST_F(CostLimits, OfTheWholeRunAreNotCheckedWithoutALengthAndThisIsSaid) {
  per_job().totalCost = "1";
  EXPECT_EQ(world.planned().chosen(), nullptr);
  world.job.spec.training.tokens.reset();
  const Plan plan = world.planned();
  EXPECT_EQ(plan.chosen()->pool->name, "a");
  EXPECT_THAT(plan.notes, Contains("what policy team allows (1.00 USD per job) is not checked: no total without "
                                   "spec.training.tokens, steps or epochs"));
}

TEST_F(CostLimits, OfANamespaceAddUpOneCurrencyAndNameTheRest) {
  per_namespace().costPerHour = "50";
  world.ledger.promises = {{"x", "team", "x", 1, "elsewhere", "", 1, 8, 10, "USD"},
                           {"y", "team", "y", 1, "elsewhere", "", 1, 8, 2000, "JPY"},
                           {"z", "team", "z", 1, "elsewhere", "", 1, 8, std::nullopt, "USD"},
                           {"o", "team", "o", 1, "elsewhere", "", 1, 8, 0, "EUR"}};
  const Plan plan = world.planned();
  ASSERT_NE(plan.chosen(), nullptr) << on(plan, "a").detail;
  EXPECT_THAT(
      plan.notes,
      Contains("what policy team allows (50.00 USD per hour and namespace) does not count 2000 JPY per hour, 1 job "
               "without a known price of other jobs of namespace team"));
  world.ledger.promises[0].cost_per_hour = 20;
  EXPECT_EQ(on(world.planned(), "a").detail,
            "32.00 USD per hour with 20.00 USD by other jobs of namespace team, policy team allows 50.00 USD");
  EXPECT_EQ(on(world.planned(), "a").reason, Reason::LimitReached);
}

TEST_F(CostLimits, RefuseNoPoolUnlessEnforced) {
  per_job().costPerHour = "40";
  world.pools = {pool("b", {.price = std::nullopt})};
  world.policies[0].spec.mode = api::PolicyMode::Warn;
  const Plan plan = world.planned();
  EXPECT_EQ(plan.chosen()->pool->name, "b");
  EXPECT_THAT(plan.notes, Contains(HasSubstr("b: price not known: what policy team allows (40.00 USD per hour)")));
}

}  // namespace
}  // namespace loadline::placement
