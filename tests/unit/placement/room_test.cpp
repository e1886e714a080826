// Where there is room for a gang: free nodes, promises, zones, nodes that may come.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "placement/explain.h"
#include "placement/gang_capacity.h"
#include "placement/plan.h"
#include "tests/unit/placement/fixtures.h"

namespace loadline::placement {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Plan, WaitsWhileNoPoolIsKnown) {
  World world;
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Waiting);
  EXPECT_EQ(outcome_reason(plan), "NoPools");
  EXPECT_THAT(refusals(world.request(), plan), IsEmpty());
}

TEST(Plan, PrefersAFreePoolToACheaperBusyOne) {
  World world;
  world.pools = {pool("cheap", {.price = "1.00", .max_nodes = 1}), pool("dear", {.price = "2.00", .max_nodes = 1})};
  world.nodes = {gke_node("n1", "cheap"), gke_node("n2", "dear")};
  world.pods = {pod_on("n1", 8)};
  const Plan plan = world.planned();
  EXPECT_EQ(plan.chosen()->pool->name, "dear");
  EXPECT_EQ(on(plan, "cheap").start, Start::Waits);
}

TEST(Plan, StartsAGangOnlyOnWholeNodes) {
  World world = one_pool();
  world.job.spec.gpus->count = 16;
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
  world.pods = {pod_on("n1", 1)};  // 15 GPUs are free, but not 2 x 8
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Waiting);
  EXPECT_THAT(on(plan, "a").detail, HasSubstr("needs 2 nodes with 8 free GPUs, 1 free now: 1 node busy"));
}

TEST(Plan, KeepsAGangInOneZoneWhenOneTakesItAll) {
  World world = one_pool();
  world.job.spec.gpus->count = 16;
  world.nodes = {gke_node("n1", "a", "zone-a"), gke_node("n2", "a", "zone-b"), gke_node("n3", "a", "zone-b")};
  EXPECT_EQ(world.planned().chosen()->zone, "zone-b");
}

TEST(Plan, FollowsTheVolumesZoneToADearerPool) {
  World world;
  world.pools = {pool("cheap", {.price = "1.00", .max_nodes = 1}), pool("dear", {.price = "2.00", .max_nodes = 1})};
  world.nodes = {gke_node("n1", "cheap", "zone-b"), gke_node("n2", "dear", "zone-a")};
  world.pinned_zone = "zone-a";
  const Plan plan = world.planned();
  EXPECT_EQ(plan.chosen()->pool->name, "dear");
  EXPECT_EQ(on(plan, "cheap").reason, Reason::ZonePinned);
}

TEST(Plan, DoesNotPromiseTheSameGpusTwice) {
  World world = one_pool();
  world.nodes.pop_back();
  world.ledger.promises = {{"uid-other", "team", "other", 1, "a", "", 1, 8, 0, "USD"}};
  EXPECT_EQ(world.planned().outcome, Outcome::Waiting);
  // Its pod is on the node already: the inventory has counted it, the ledger must not again.
  json bound = pod_on("n1", 8);
  bound["metadata"]["labels"] = {{"loadline.dev/job-uid", "uid-other"}, {"loadline.dev/attempt", "1"}};
  world.pods = {bound};
  world.nodes.push_back(gke_node("n2", "a"));
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
}

TEST(Plan, IgnoresTheJobsOwnPromise) {
  World world = one_pool();
  world.nodes.pop_back();
  world.ledger.promises = {{"uid-sft", "team", "sft", 1, "a", "", 1, 8, 0, "USD"}};
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
}

TEST(Plan, ScalesUpWhatTheAutoscalerCanBring) {
  World world;
  world.pools = {pool("a", {.max_nodes = 2})};
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Placed);
  EXPECT_EQ(plan.chosen()->start, Start::ScaleUp);
  world.job.spec.gpus->count = 24;
  EXPECT_EQ(world.planned().outcome, Outcome::Unplaceable);
}

TEST(Plan, ChecksTheOtherResourcesOfEachNode) {
  World world = one_pool();
  world.job.spec.podTemplate =
      json::parse(R"({"spec": {"containers": [{"name": "trainer", "resources": {"requests": {"cpu": "100"}}}]}})");
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Waiting);
  EXPECT_THAT(on(plan, "a").detail, HasSubstr("2 nodes short of CPU, memory, pods or network devices"));
}

TEST(Plan, AvoidsNodesThatFailed) {
  World world = one_pool();
  world.avoided = {"n1", "n2"};
  EXPECT_THAT(on(world.planned(), "a").detail, HasSubstr("2 nodes avoided after failures there"));
}

TEST(Gang, IsTheFewestEqualPods) {
  EXPECT_EQ(gang_of(8, 8).nodes, 1);
  EXPECT_EQ(gang_of(16, 8).nodes, 2);
  EXPECT_EQ(gang_of(12, 8).gpus_per_node, 6);
  EXPECT_EQ(gang_of(4, 8).gpus_per_node, 4);
  EXPECT_EQ(gang_of(7, 1).nodes, 7);
}

RC_GTEST_PROP(PlanProperty, NeverPromisesMoreThanIsFree, ()) {
  World world;
  const int nodes = *rc::gen::inRange(1, 5);
  world.pools = {pool("a", {.max_nodes = 0})};
  world.job.spec.gpus->count = *rc::gen::element(1, 2, 4, 8, 16);
  for (int i = 0; i < nodes; ++i) {
    world.nodes.push_back(gke_node("n" + std::to_string(i), "a", i % 2 == 0 ? "zone-a" : "zone-b"));
    world.pods.push_back(pod_on("n" + std::to_string(i), *rc::gen::inRange(0, 9)));
  }
  const std::int64_t free = world.inventory().pools[0]->gpus_free();
  const Plan plan = world.planned();
  if (const Candidate* chosen = plan.chosen()) RC_ASSERT(chosen->layout->gpus <= free);
  // One more free node never makes a job that could start unable to.
  const bool could = plan.outcome == Outcome::Placed;
  world.nodes.push_back(gke_node("extra", "a"));
  RC_ASSERT(!could || world.planned().outcome == Outcome::Placed);
  // A pool that is not allowed is never chosen.
  world.policies = {policy()};
  world.policies[0].spec.allow = api::PoolRules{};
  world.policies[0].spec.allow->pools = {"b"};
  RC_ASSERT(world.planned().chosen() == nullptr);
}

}  // namespace
}  // namespace loadline::placement
