#include "placement/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/money.h"
#include "placement/node_state.h"
#include "tests/unit/placement/fixtures.h"

namespace loadline::placement {
namespace {

using namespace testing_support;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Inventory of(const std::vector<api::GPUPool>& pools, const std::vector<json>& nodes,
             const std::vector<json>& pods = {}) {
  World world;
  world.pools = pools;
  world.nodes = nodes;
  world.pods = pods;
  return world.inventory();
}

TEST(Facts, AreReadFromAnyJson) {
  for (const char* text : {"null", "[]", "3", "\"x\"", "{}", R"({"metadata":3,"spec":[],"status":{"allocatable":[1]}})",
                           R"({"spec":{"taints":{"a":1},"containers":[1,null,{"resources":"x"}]},"status":null})"}) {
    const json value = json::parse(text);
    EXPECT_FALSE(node_facts(value).ready()) << text;
    EXPECT_EQ(pod_facts(value).node, "") << text;
  }
}

TEST(Facts, CountAPodsRequestsAsTheSchedulerDoes) {
  const json pod = json::parse(R"({
    "containers": [{"resources": {"requests": {"cpu": "500m"}, "limits": {"nvidia.com/gpu": "2"}}},
                   {"resources": {"requests": {"cpu": "1"}}}],
    "initContainers": [{"resources": {"requests": {"cpu": "250m"}}, "restartPolicy": "Always"},
                       {"resources": {"requests": {"cpu": "4", "nvidia.com/gpu": "1"}}}],
    "overhead": {"cpu": "100m"}})");
  const Resources sum = pod_requests(pod);
  EXPECT_EQ(sum.at("cpu"), 4350);  // the large init container beside the sidecar, and the overhead
  EXPECT_EQ(whole(sum, "nvidia.com/gpu"), 2);
}

TEST(Facts, LetAPodsOwnRequestStandForItsContainersAndItsLimitWhereTheyRequestNothing) {
  const json pod = json::parse(R"({
    "resources": {"requests": {"cpu": "6"}, "limits": {"cpu": "8", "memory": "32Gi", "hugepages-2Mi": "1Gi"}},
    "containers": [{"resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}, {"resources": {"limits": {"cpu": "2"}}}],
    "overhead": {"cpu": "250m"}})");
  const Resources sum = pod_requests(pod);
  EXPECT_EQ(sum.at("cpu"), 6250);
  EXPECT_EQ(whole(sum, "memory"), 4 * kGiB) << "of the containers: the pod only has a limit";
  EXPECT_EQ(whole(sum, "hugepages-2Mi"), kGiB);
}

TEST(Inventory, DiscoversAPoolFromTheCloudsLabels) {
  const Inventory inventory = of({}, {gke_node("n1", "a100-pool"), gke_node("n2", "a100-pool")});
  ASSERT_THAT(inventory.pools, SizeIs(1));
  const Pool& pool = *inventory.pools[0];
  EXPECT_EQ(pool.name, "a100-pool");
  EXPECT_FALSE(pool.declared);
  EXPECT_EQ(pool.per_node, 8);
  EXPECT_EQ(pool.gpus_free(), 16);
  EXPECT_EQ(pool.interconnect, api::Interconnect::NvSwitch);
  EXPECT_EQ(pool.network_gbps, 100);
  EXPECT_EQ(pool.node_selector.at("cloud.google.com/gke-nodepool"), "a100-pool");
  EXPECT_FALSE(pool.price.has_value());
}

TEST(Inventory, SplitsKarpentersPoolsByMachineAndCapacityType) {
  json spot = gke_node("n1", "x");
  spot["metadata"]["labels"] = {{"karpenter.sh/nodepool", "gpu"},
                                {"karpenter.sh/capacity-type", "spot"},
                                {"node.kubernetes.io/instance-type", "p4d.24xlarge"}};
  json on_demand = spot;
  on_demand["metadata"]["name"] = "n2";
  on_demand["metadata"]["labels"]["karpenter.sh/capacity-type"] = "on-demand";
  const Inventory inventory = of({}, {spot, on_demand});
  ASSERT_THAT(inventory.pools, SizeIs(2));
  EXPECT_EQ(inventory.pools[0]->name, "gpu-p4d.24xlarge-on-demand");
  EXPECT_EQ(inventory.pools[1]->name, "gpu-p4d.24xlarge-spot");
  EXPECT_EQ(inventory.pools[1]->capacity_type, api::CapacityType::Spot);
  EXPECT_EQ(inventory.pools[1]->memory_mib, 40960) << "the machine type names the card";
}

TEST(Inventory, TakesUsableMemoryPerGpuFromWhatTheNodeReports) {
  json node = gke_node("n1", "h100");
  node["metadata"]["labels"]["nvidia.com/gpu.memory"] = "81559";
  node["metadata"]["labels"]["nvidia.com/gpu.count"] = "8";
  const Inventory inventory = of({}, {node});
  EXPECT_EQ(inventory.pools[0]->memory_mib, 81559) << "per GPU, not divided by the count";
  EXPECT_EQ(inventory.pools[0]->usable_mib, 81559 - 720);
}

TEST(Inventory, UsesTheLeastWhenSourcesDisagreeAndSaysSo) {
  json node = gke_node("n1", "l4");
  node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-L4";
  node["metadata"]["labels"]["nvidia.com/gpu.memory"] = "23034";
  node["metadata"]["labels"]["karpenter.k8s.aws/instance-gpu-memory"] = "22888";
  const Inventory inventory = of({}, {node});
  EXPECT_EQ(inventory.pools[0]->memory_mib, 22888);
  ASSERT_THAT(inventory.pools[0]->disagreements, SizeIs(1));
  EXPECT_THAT(inventory.pools[0]->disagreements[0], HasSubstr("23034"));
  EXPECT_THAT(inventory.pools[0]->disagreements[0], HasSubstr("22888"));
}

TEST(Inventory, KnowsNoMemoryWhenNothingSaysIt) {
  json node = gke_node("n1", "odd");
  node["metadata"]["labels"].erase("nvidia.com/gpu.memory");
  node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-Something-New";
  node["metadata"]["labels"].erase("node.kubernetes.io/instance-type");
  const Inventory inventory = of({}, {node});
  EXPECT_FALSE(inventory.pools[0]->memory_mib.has_value());
  EXPECT_FALSE(inventory.pools[0]->usable_mib.has_value());
}

TEST(Inventory, SubtractsForeignPodsAndForgetsThoseThatEnded) {
  const std::vector<json> pods = {pod_on("n1", 3), pod_on("n1", 4, "Succeeded"), pod_on("n2", 8, "Failed"),
                                  pod_on("", 8)};
  const Inventory inventory = of({}, {gke_node("n1", "a"), gke_node("n2", "a")}, pods);
  EXPECT_EQ(inventory.pools[0]->nodes[0].free, 5);
  EXPECT_EQ(inventory.pools[0]->nodes[1].free, 8);
}

TEST(Inventory, GivesANodeToTheMoreSpecificPoolAndTellsTheOther) {
  api::GPUPool wide = pool("wide");
  wide.spec.nodeSelector = {{"cloud.google.com/gke-nodepool", "a"}};
  api::GPUPool narrow = pool("narrow");
  narrow.spec.nodeSelector = {{"cloud.google.com/gke-nodepool", "a"}, {"topology.kubernetes.io/zone", "zone-a"}};
  const Inventory inventory = of({wide, narrow}, {gke_node("n1", "a")});
  EXPECT_THAT(inventory.find("narrow")->nodes, SizeIs(1));
  EXPECT_THAT(inventory.find("wide")->nodes, IsEmpty());
  EXPECT_THAT(inventory.find("wide")->disagreements, ElementsAre(HasSubstr("also selected by pool narrow")));
}

TEST(Inventory, BelievesNodesOverTheObject) {
  api::GPUPool object = pool("a", {.per_node = 4});
  object.spec.gpu->memoryMiBPerGPU = 90000;
  const Inventory inventory = of({object}, {gke_node("n1", "a")});
  EXPECT_EQ(inventory.pools[0]->per_node, 8);
  EXPECT_EQ(inventory.pools[0]->memory_mib, 81920);
  EXPECT_THAT(inventory.pools[0]->disagreements, SizeIs(2));
}

struct StateCase {
  std::string name;
  json patch;
  NodeState state;
};

class NodeStateTest : public testing::TestWithParam<StateCase> {};

TEST_P(NodeStateTest, IsRead) {
  json node = gke_node("n", "a");
  node.merge_patch(GetParam().patch);
  const NodeVerdict verdict = judge_node(node_facts(node), "nvidia.com/gpu", CloudTables::builtin());
  EXPECT_EQ(verdict.state, GetParam().state) << verdict.why;
  EXPECT_EQ(verdict.why.empty(), GetParam().state == NodeState::Usable);
}

json taint(const std::string& key, const std::string& value, const std::string& effect) {
  return {{"spec", {{"taints", json::array({{{"key", key}, {"value", value}, {"effect", effect}}})}}}};
}

json label(const std::string& key, const std::string& value) { return {{"metadata", {{"labels", {{key, value}}}}}}; }

json allocatable(const std::string& key, const std::string& value) {
  return {{"status", {{"allocatable", {{key, value}}}}}};
}

json condition(const std::string& type, const std::string& status) {
  return {
      {"status",
       {{"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}, {{"type", type}, {"status", status}}})}}}};
}

INSTANTIATE_TEST_SUITE_P(
    Signs, NodeStateTest,
    testing::Values(
        StateCase{"Plain", json::object(), NodeState::Usable},
        StateCase{"Cordoned", {{"spec", {{"unschedulable", true}}}}, NodeState::Cordoned},
        StateCase{"Deleting", {{"metadata", {{"deletionTimestamp", "2026-11-30T00:00:00Z"}}}}, NodeState::Ending},
        StateCase{"NotReady", {{"status", {{"conditions", json::array()}}}}, NodeState::NotReady},
        StateCase{"DiskPressure", taint("node.kubernetes.io/disk-pressure", "", "NoSchedule"), NodeState::NotReady},
        StateCase{"MemoryPressure", taint("node.kubernetes.io/memory-pressure", "", "NoSchedule"), NodeState::Usable},
        StateCase{"Unreachable", taint("node.kubernetes.io/unreachable", "", "NoExecute"), NodeState::NotReady},
        StateCase{"GkeTermination", taint("cloud.google.com/impending-node-termination", "", "NoSchedule"),
                  NodeState::Ending},
        StateCase{"AwsSpotNotice", taint("aws-node-termination-handler/spot-itn", "x", "NoSchedule"),
                  NodeState::Ending},
        StateCase{"KarpenterDisrupted", taint("karpenter.sh/disrupted", "", "NoSchedule"), NodeState::Ending},
        StateCase{"OutOfService", taint("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute"),
                  NodeState::Ending},
        StateCase{"AutoscalerCandidate", taint("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule"),
                  NodeState::Usable},
        StateCase{"AksPreemption", condition("PreemptionScheduled", "True"), NodeState::Ending},
        StateCase{"AksNoPreemption", condition("PreemptionScheduled", "False"), NodeState::Usable},
        StateCase{"GkeMaintenance", label("cloud.google.com/active-node-maintenance", "ONGOING"), NodeState::Ending},
        StateCase{"TimeSliced", label("nvidia.com/gpu.sharing-strategy", "time-slicing"), NodeState::Partitioned},
        StateCase{"Replicated", label("nvidia.com/gpu.replicas", "10"), NodeState::Partitioned},
        StateCase{"NotReplicated", label("nvidia.com/gpu.replicas", "1"), NodeState::Usable},
        StateCase{"SharedProduct", label("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB-SHARED"),
                  NodeState::Partitioned},
        StateCase{"MigProduct", label("nvidia.com/gpu.product", "NVIDIA-H200-MIG-7g.141gb"), NodeState::Partitioned},
        StateCase{"MigSlices", allocatable("nvidia.com/mig-1g.10gb", "6"), NodeState::Partitioned},
        StateCase{"MigSlicesOfZero", allocatable("nvidia.com/mig-1g.24gb", "0"), NodeState::Usable},
        StateCase{"Booting", allocatable("nvidia.com/gpu", "0"), NodeState::Arriving}),
    [](const auto& test) { return test.param.name; });

struct TolerationCase {
  std::string name;
  api::Toleration toleration;
  Taint taint;
  bool tolerated;
};

class TolerationTest : public testing::TestWithParam<TolerationCase> {};

TEST_P(TolerationTest, MatchesAsTheSchedulerDoes) {
  EXPECT_EQ(tolerates({GetParam().toleration}, GetParam().taint), GetParam().tolerated);
}

api::Toleration toleration(std::optional<std::string> key, std::optional<std::string> op,
                           std::optional<std::string> value = {}, std::optional<std::string> effect = {}) {
  api::Toleration out;
  out.key = std::move(key);
  out.op = std::move(op);
  out.value = std::move(value);
  out.effect = std::move(effect);
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, TolerationTest,
    testing::Values(
        TolerationCase{"ExistsSameKey", toleration("team", "Exists"), {"team", "b", "NoSchedule"}, true},
        TolerationCase{"ExistsOtherKey", toleration("team", "Exists"), {"role", "b", "NoSchedule"}, false},
        TolerationCase{"EqualSameValue", toleration("team", "Equal", "b"), {"team", "b", "NoExecute"}, true},
        TolerationCase{"EqualOtherValue", toleration("team", "Equal", "a"), {"team", "b", "NoSchedule"}, false},
        TolerationCase{"NoOperatorMeansEqual", toleration("team", {}, "b"), {"team", "b", "NoSchedule"}, true},
        TolerationCase{
            "OtherEffect", toleration("team", "Exists", {}, "NoExecute"), {"team", "b", "NoSchedule"}, false},
        TolerationCase{"EmptyKeyExistsMeansAll", toleration({}, "Exists"), {"team", "b", "NoExecute"}, true},
        TolerationCase{"EmptyKeyEqualMeansNothing", toleration({}, "Equal"), {"team", "", "NoSchedule"}, false},
        TolerationCase{"PreferNeverBlocks", toleration("x", "Exists"), {"team", "b", "PreferNoSchedule"}, true}),
    [](const auto& test) { return test.param.name; });

struct PriceCase {
  std::string name;
  std::optional<std::string> typed;
  bool owned;
  bool known;
  bool refused;  // at admission
};

class PriceTest : public testing::TestWithParam<PriceCase> {};

TEST_P(PriceTest, IsReadStrictly) {
  api::GPUPool object = pool("a", {.price = GetParam().typed});
  if (!object.spec.price) object.spec.price = api::PriceSpec{};
  object.spec.price->owned = GetParam().owned;
  const Inventory inventory = of({object}, {});
  EXPECT_EQ(inventory.pools[0]->price.has_value(), GetParam().known);
  EXPECT_EQ(!check_pool(object).empty(), GetParam().refused);
  if (!GetParam().known && GetParam().typed) {
    EXPECT_NE(inventory.pools[0]->price_problem, "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PriceTest,
    testing::Values(PriceCase{"Plain", "1.25", false, true, false}, PriceCase{"Zero", "0", false, false, true},
                    PriceCase{"ZeroOwned", "0", true, true, false},
                    PriceCase{"AbsentOwned", std::nullopt, true, true, false},
                    PriceCase{"Absent", std::nullopt, false, false, true},
                    PriceCase{"Negative", "-1", false, false, true}, PriceCase{"Tiny", "1e-300", false, false, true},
                    PriceCase{"NotANumber", "NaN", false, false, true}, PriceCase{"Comma", "1,20", false, false, true}),
    [](const auto& test) { return test.param.name; });

TEST(Price, PerNodeIsDividedByTheGpusOfANode) {
  api::GPUPool object = pool("a", {.price = std::nullopt});
  object.spec.price = api::PriceSpec{};
  object.spec.price->perNodeHour = "32";
  EXPECT_DOUBLE_EQ(of({object}, {}).pools[0]->price->per_gpu_hour, 4);
}

TEST(Price, GrowsStale) {
  api::GPUPool object = pool("a");
  object.spec.price->asOf = "2026-05-14";
  EXPECT_EQ(of({object}, {}).pools[0]->price->age_days, 200);
  EXPECT_TRUE(of({object}, {}).pools[0]->price->stale());
}

TEST(Money, IsPrintedTheSameWayEverywhere) {
  EXPECT_EQ(money_number(1.6), "1.60");
  EXPECT_EQ(money_number(0.0345), "0.0345");
  EXPECT_EQ(money_text(411.6, "USD"), "412 USD");
  EXPECT_EQ(money_text(3.666, "EUR"), "3.67 EUR");
}

TEST(PoolStatus, CountsNodesByStateAndGpusByZone) {
  json cordoned = gke_node("n3", "a", "zone-b");
  cordoned["spec"]["unschedulable"] = true;
  const Inventory inventory = of({pool("a")}, {gke_node("n1", "a"), gke_node("n2", "a"), cordoned}, {pod_on("n1", 3)});
  const api::GPUPoolStatus status = pool_status(*inventory.pools[0]);
  EXPECT_EQ(status.nodes->ready, 2);
  EXPECT_EQ(status.nodes->cordoned, 1);
  EXPECT_EQ(status.gpusTotal, 16);
  EXPECT_EQ(status.gpusFree, 13);
  ASSERT_THAT(status.zones, SizeIs(1));
  EXPECT_EQ(status.zones[0].largestFreeBlock, 8);
}

}  // namespace
}  // namespace loadline::placement
