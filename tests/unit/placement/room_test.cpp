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

/// A template whose trainer asks for this much.
json asking(const json& requests) {
  return {{"spec", {{"containers", json::array({{{"name", "trainer"}, {"resources", {{"requests", requests}}}}})}}}};
}

/// A pod without GPUs that takes this much of a node.
json taking(const std::string& node, const json& requests) {
  json pod = pod_on(node, 0);
  pod["spec"]["containers"][0]["resources"]["requests"] = requests;
  return pod;
}

TEST(Plan, WaitsForTheOtherResourcesOfANode) {
  World world = one_pool();
  world.job.spec.podTemplate = asking({{"cpu", "60"}});
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
  world.pods = {taking("n1", {{"cpu", "40"}}), taking("n2", {{"cpu", "40"}})};
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Waiting);
  EXPECT_THAT(on(plan, "a").detail, HasSubstr("2 nodes short of CPU, memory, pods or network devices"));
}

TEST(Plan, RefusesAPoolWhoseNodesAreTooSmallForThePod) {
  World world = one_pool();
  world.pools = {pool("a", {.max_nodes = 5})};
  world.job.spec.podTemplate = asking({{"cpu", "100"}});
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Unplaceable);
  EXPECT_THAT(on(plan, "a").detail, HasSubstr("2 nodes too small for the pod's CPU, memory or devices"));
}

TEST(Plan, DoesNotScaleUpNodesThatTheTemplateKeepsTheGangOff) {
  World world = one_pool();
  world.pools = {pool("a", {.max_nodes = 5})};
  world.nodes[0]["spec"]["taints"].push_back({{"key", "team"}, {"value", "b"}, {"effect", "NoSchedule"}});
  world.nodes[1]["spec"]["taints"] = world.nodes[0]["spec"]["taints"];
  EXPECT_EQ(on(world.planned(), "a").reason, Reason::TaintNotTolerated);
  world = one_pool();
  world.pools = {pool("a", {.max_nodes = 5})};
  world.job.spec.podTemplate = {{"spec", {{"nodeSelector", {{"disk", "nvme"}}}}}};
  EXPECT_EQ(world.planned().outcome, Outcome::Unplaceable);
  world.nodes[1]["metadata"]["labels"]["disk"] = "nvme";
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
}

TEST(Plan, DoesNotScaleUpAPoolThatTheTemplateSelectsAgainst) {
  World world;
  world.pools = {pool("a", {.max_nodes = 5})};
  world.job.spec.podTemplate = {{"spec", {{"nodeSelector", {{"cloud.google.com/gke-nodepool", "b"}}}}}};
  EXPECT_EQ(world.planned().outcome, Outcome::Unplaceable);
}

json required_affinity(const json& expression) {
  json pod_template;
  pod_template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
              ["nodeSelectorTerms"] = json::array({{{"matchExpressions", json::array({expression})}}});
  return pod_template;
}

TEST(Plan, KeepsToTheRequiredNodeAffinityOfTheTemplate) {
  World world = one_pool();
  world.nodes[1]["metadata"]["labels"]["generation"] = "7";
  const auto fits = [&](const char* key, const char* op, const json& values) {
    world.job.spec.podTemplate = required_affinity({{"key", key}, {"operator", op}, {"values", values}});
    return on(world.planned(), "a").free_gpus;
  };
  EXPECT_EQ(fits("generation", "Exists", json::array()), 8);
  EXPECT_EQ(fits("generation", "DoesNotExist", json::array()), 8);
  EXPECT_EQ(fits("generation", "In", {"6", "7"}), 8);
  EXPECT_EQ(fits("generation", "NotIn", {"6"}), 16);
  EXPECT_EQ(fits("generation", "Gt", {"6"}), 8);
  EXPECT_EQ(fits("generation", "Lt", {"7"}), 0);
  EXPECT_EQ(fits("topology.kubernetes.io/zone", "In", {"zone-a"}), 16);
  EXPECT_EQ(fits("generation", "Like", {"7"}), 0) << "no operator of Kubernetes'";
  EXPECT_THAT(on(world.planned(), "a").detail, HasSubstr("2 nodes outside the template's nodeAffinity"));
}

TEST(Plan, LeavesOtherPromisesTheirCpuToo) {
  World world = one_pool();
  world.nodes.pop_back();
  world.job.spec.gpus->count = 4;
  world.job.spec.podTemplate = asking({{"cpu", "60"}});
  Promise other{"uid-other", "team", "other", 1, "a", "", 1, 4, 0, "USD"};
  world.ledger.promises = {other};
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
  world.ledger.promises[0].pod = {{"cpu", 60000}};
  EXPECT_EQ(world.planned().outcome, Outcome::Waiting);
}

TEST(Plan, DoesNotPromiseNodesThatAreToComeTwice) {
  World world;
  world.pools = {pool("a", {.max_nodes = 2})};
  world.job.spec.gpus->count = 16;
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
  world.ledger.promises = {{"uid-other", "team", "other", 1, "a", "", 1, 8, 0, "USD"}};
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Waiting) << "one of the two is spoken for";
  EXPECT_EQ(on(plan, "a").start, Start::Waits);
}

TEST(Plan, KeepsAPromiseUntilTheAttemptIsOver) {
  World world = one_pool();
  json ended = pod_on("n1", 8, "Succeeded");
  json running = pod_on("n2", 8);
  for (json* pod : {&ended, &running}) {
    (*pod)["metadata"]["labels"] = {{"loadline.dev/job-uid", "uid-other"}, {"loadline.dev/attempt", "1"}};
  }
  world.pods = {ended, running};
  world.ledger.promises = {{"uid-other", "team", "other", 1, "a", "", 2, 8, 0, "USD"}};
  EXPECT_EQ(world.planned().outcome, Outcome::Waiting);
  world.ledger.promises.clear();
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
}

TEST(Plan, CountsNetworkDevicesAsThePodsWillAskForThem) {
  World world;
  world.pools = {pool("a", {.max_nodes = 0})};
  world.pools[0].spec.network->extraResources = {{"vpc.amazonaws.com/efa", 32}};
  world.nodes = {gke_node("n1", "a")};
  world.nodes[0]["status"]["allocatable"]["vpc.amazonaws.com/efa"] = "32";
  json neighbour = pod_on("n1", 4);
  neighbour["spec"]["containers"][0]["resources"]["requests"]["vpc.amazonaws.com/efa"] = "32";
  world.pods = {neighbour};
  world.job.spec.gpus->count = 4;
  EXPECT_EQ(world.planned().outcome, Outcome::Placed) << "a gang of one asks for none";
  const auto pool = world.inventory().pools[0];
  EXPECT_TRUE(pool->extra_for(1, 8).empty());
  EXPECT_EQ(pool->extra_for(2, 4).at("vpc.amazonaws.com/efa"), 16);
  EXPECT_EQ(pool->asked_by_pod({}, 2, 4).at("vpc.amazonaws.com/efa"), 16000);
  EXPECT_EQ(pool->asked_by_pod({{"vpc.amazonaws.com/efa", 1000}}, 2, 4).at("vpc.amazonaws.com/efa"), 1000)
      << "as the template says";
}

TEST(Plan, WaitsForTheRamOfOffloadedStatesAndRefusesWhatNoNodeHas) {
  World world = one_pool();
  world.job.spec.parallelism = api::ParallelismSpec{};
  world.job.spec.parallelism->offload = api::Offload::Optimizer;
  world.job.spec.training.framework = api::Framework::DeepSpeed;
  ASSERT_EQ(world.planned().outcome, Outcome::Placed);
  world.pods = {taking("n1", {{"memory", "1290Gi"}}), taking("n2", {{"memory", "1290Gi"}})};
  EXPECT_EQ(world.planned().outcome, Outcome::Waiting);
  for (json& node : world.nodes) node["status"]["allocatable"]["memory"] = "20Gi";
  world.pods.clear();
  const Plan plan = world.planned();
  EXPECT_EQ(on(plan, "a").reason, Reason::InsufficientHostMemory);
  EXPECT_THAT(on(plan, "a").detail, HasSubstr("its largest has 20.0 GiB"));
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
