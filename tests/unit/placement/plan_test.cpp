#include "placement/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>

#include "estimator/gpu.h"
#include "placement/explain.h"
#include "placement/gang_capacity.h"
#include "placement/outlook.h"
#include "tests/unit/placement/fixtures.h"

namespace loadline::placement {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

World one_pool() {
  World world;
  world.pools = {pool("a", {.max_nodes = 0})};
  world.nodes = {gke_node("n1", "a"), gke_node("n2", "a")};
  return world;
}

api::PlacementPolicy policy(const std::string& name = "team") {
  api::PlacementPolicy out;
  out.metadata.name = name;
  return out;
}

struct ReasonCase {
  Reason reason;
  std::function<void(World&)> change;
  std::string says;
};

void PrintTo(const ReasonCase& c, std::ostream* out) { *out << reason_name(c.reason); }

class ReasonTest : public testing::TestWithParam<ReasonCase> {};

TEST_P(ReasonTest, IsGivenWithItsNumbers) {
  World world = one_pool();
  GetParam().change(world);
  const Plan plan = world.planned();
  const Candidate& candidate = on(plan, "a");
  EXPECT_EQ(reason_name(candidate.reason), reason_name(GetParam().reason)) << candidate.detail;
  EXPECT_THAT(candidate.detail, HasSubstr(GetParam().says));
  if (candidate.verdict == Verdict::Refused) {
    EXPECT_EQ(plan.outcome, may_pass(candidate.reason) ? Outcome::Waiting : Outcome::Unplaceable);
    EXPECT_EQ(refusals(world.request(), plan).empty(), may_pass(candidate.reason));
  }
}

const std::vector<ReasonCase> kReasons = {
    {Reason::Chosen, [](World&) {}, ""},
    {Reason::NoFreeGPUs,
     [](World& w) {
       w.pods = {pod_on("n1", 1), pod_on("n2", 8)};
     },
     "needs 1 node with 8 free GPUs, 0 free now: 2 nodes busy"},
    {Reason::NodesBooting, [](World& w) { w.nodes = {gke_node("n1", "a", "zone-a", 0)}; },
     "1 node Ready without GPUs yet"},
    {Reason::NodesEnding,
     [](World& w) {
       w.nodes[0]["spec"]["unschedulable"] = true;
       w.nodes[1]["spec"]["unschedulable"] = true;
     },
     "2 nodes cordoned"},
    {Reason::NodesEnding,
     [](World& w) {
       w.nodes.pop_back();
       w.nodes[0]["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z";
     },
     "1 node being deleted"},
    {Reason::TaintNotTolerated,
     [](World& w) {
       for (json& node : w.nodes) {
         node["spec"]["taints"].push_back({{"key", "team"}, {"value", "b"}, {"effect", "NoSchedule"}});
       }
     },
     "2 nodes taint team=b:NoSchedule"},
    {Reason::UnknownMemory,
     [](World& w) {
       w.pools[0].spec.gpu->product = "NVIDIA-New";
       for (json& node : w.nodes) {
         node["metadata"]["labels"] = {{"cloud.google.com/gke-nodepool", "a"}};
       }
     },
     "NVIDIA-New is not in the table"},
    {Reason::NoLayout,
     [](World& w) {
       w.job.spec.parallelism = api::ParallelismSpec{};
       w.job.spec.parallelism->tensor = 3;
     },
     "3"},
    {Reason::InsufficientMemory, [](World& w) { w.job.spec.model.preset = "llama-3.1-70b"; }, "usable 79.3 (short"},
    {Reason::NotEnoughGPUs, [](World& w) { w.job.spec.gpus->count = 64; },
     "needs 8 nodes with 8 free GPUs, the pool can have 2"},
    {Reason::SharedGPUs,
     [](World& w) {
       for (json& node : w.nodes) node["metadata"]["labels"]["nvidia.com/gpu.sharing-strategy"] = "time-slicing";
     },
     "time-slicing"},
    {Reason::PoolExcluded,
     [](World& w) {
       w.job.spec.placement = api::PlacementSpec{};
       w.job.spec.placement->pools = {"b"};
     },
     "spec.placement.pools (b)"},
    {Reason::GpuModelExcluded,
     [](World& w) {
       w.job.spec.placement = api::PlacementSpec{};
       w.job.spec.placement->gpuModels = {"H100"};
     },
     "asks for H100"},
    {Reason::CapacityTypeExcluded,
     [](World& w) {
       w.job.spec.placement = api::PlacementSpec{};
       w.job.spec.placement->capacityType = api::CapacityWish::Spot;
     },
     "is on-demand"},
    {Reason::InterconnectExcluded,
     [](World& w) {
       w.pools[0].spec.gpu->interconnect = api::Interconnect::Pcie;
       w.job.spec.placement = api::PlacementSpec{};
       w.job.spec.placement->interconnect = api::InterconnectWish::NvLink;
     },
     "linked by PCIe"},
    {Reason::PolicyDenied,
     [](World& w) {
       w.policies = {policy()};
       w.policies[0].spec.allow = api::PoolRules{};
       w.policies[0].spec.allow->pools = {"b"};
     },
     "by policy team: pool not in allow list"},
    {Reason::PolicyDenied,
     [](World& w) {
       w.policies = {policy()};
       w.policies[0].spec.deny = api::PoolRules{};
       w.policies[0].spec.deny->gpuModels = {"A100"};
     },
     "deny list"},
    {Reason::PolicyDenied,
     [](World& w) {
       w.job.spec.placement = api::PlacementSpec{};
       w.job.spec.placement->policy = "absent";
     },
     "policy absent does not exist"},
    {Reason::SpotNotAllowed,
     [](World& w) {
       w.pools[0].spec.capacityType = api::CapacityType::Spot;
       w.policies = {policy()};
       w.policies[0].spec.spot = api::SpotSpec{};
       w.policies[0].spec.spot->allow = false;
     },
     "no spot"},
    {Reason::SpotNotAllowed,
     [](World& w) {
       w.pools[0].spec.capacityType = api::CapacityType::Spot;
       w.job.spec.checkpoint.reset();
     },
     "add spec.checkpoint"},
    {Reason::Escalated,
     [](World& w) {
       w.pools[0].spec.capacityType = api::CapacityType::Spot;
       w.escalated_at = kNow;
     },
     "spot was left"},
    {Reason::NoExpectedProgress,
     [](World& w) {
       w.pools[0].spec.interruptionsPerNodeHour = 15;
       w.pools[0].spec.storage = api::StorageSpec{};
       w.pools[0].spec.storage->writeMiBps = 300;
     },
     "would not get on"},
    {Reason::LimitExceeded,
     [](World& w) {
       w.policies = {policy()};
       w.policies[0].spec.limits = api::LimitsSpec{};
       w.policies[0].spec.limits->perJob = api::JobLimits{};
       w.policies[0].spec.limits->perJob->gpus = 4;
     },
     "8 GPUs, policy team allows 4 per job"},
    {Reason::LimitExceeded,
     [](World& w) {
       w.policies = {policy()};
       w.policies[0].spec.limits = api::LimitsSpec{};
       w.policies[0].spec.limits->perJob = api::JobLimits{};
       w.policies[0].spec.limits->perJob->costPerHour = "10";
     },
     "32.00 USD per hour, policy team allows 10.00 USD"},
    {Reason::LimitReached,
     [](World& w) {
       w.policies = {policy()};
       w.policies[0].spec.limits = api::LimitsSpec{};
       w.policies[0].spec.limits->perNamespace = api::NamespaceLimits{};
       w.policies[0].spec.limits->perNamespace->gpus = 12;
       w.ledger.promises = {{"other", "team", "other", 1, "elsewhere", "", 1, 8, 0, "USD"}};
     },
     "8 GPUs with 8 in use by other jobs of namespace team, policy team allows 12"},
    {Reason::ZonePinned, [](World& w) { w.pinned_zone = "zone-b"; }, "the checkpoint volume is in zone zone-b"},
    {Reason::InsufficientHostMemory,
     [](World& w) {
       w.job.spec.model.preset = "llama-3.1-8b";
       w.job.spec.parallelism = api::ParallelismSpec{};
       w.job.spec.parallelism->offload = api::Offload::Optimizer;
       for (json& node : w.nodes) node["status"]["allocatable"]["memory"] = "16Gi";
     },
     "of RAM per node for offload"},
};

INSTANTIATE_TEST_SUITE_P(Codes, ReasonTest, testing::ValuesIn(kReasons));

TEST(Reasons, AreAllProducedByATestAndInTheDocument) {
  std::ifstream file(std::string(LOADLINE_SOURCE_DIR) + "/docs/placement.md");
  std::stringstream document;
  document << file.rdbuf();
  for (const auto& [reason, name] : kReasonNames) {
    EXPECT_THAT(document.str(), HasSubstr("| `" + std::string(name) + "` |"));
    if (reason == Reason::Fits) continue;  // the second best of RanksByExpectedCost
    const bool tested =
        std::any_of(kReasons.begin(), kReasons.end(), [&](const ReasonCase& c) { return c.reason == reason; });
    EXPECT_TRUE(tested) << name;
  }
}

TEST(Plan, WaitsWhileNoPoolIsKnown) {
  World world;
  const Plan plan = world.planned();
  EXPECT_EQ(plan.outcome, Outcome::Waiting);
  EXPECT_EQ(outcome_reason(plan), "NoPools");
  EXPECT_THAT(refusals(world.request(), plan), IsEmpty());
}

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

TEST(Gang, IsTheFewestEqualPods) {
  EXPECT_EQ(gang_of(8, 8).nodes, 1);
  EXPECT_EQ(gang_of(16, 8).nodes, 2);
  EXPECT_EQ(gang_of(12, 8).gpus_per_node, 6);
  EXPECT_EQ(gang_of(4, 8).gpus_per_node, 4);
  EXPECT_EQ(gang_of(7, 1).nodes, 7);
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
