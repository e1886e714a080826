// Every reason code of a candidate: what brings it about and what it says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>

#include "placement/explain.h"
#include "placement/plan.h"
#include "tests/unit/placement/fixtures.h"

namespace loadline::placement {
namespace {

using namespace testing_support;
using testing::HasSubstr;

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
       w.policies = {policy()};
       w.policies[0].spec.spot = api::SpotSpec{};
       w.policies[0].spec.spot->maxPreemptions = 1;
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
    {Reason::UnknownCost,
     [](World& w) {
       w.pools[0].spec.price.reset();
       w.policies = {policy()};
       w.policies[0].spec.limits = api::LimitsSpec{};
       w.policies[0].spec.limits->perJob = api::JobLimits{};
       w.policies[0].spec.limits->perJob->costPerHour = "40";
     },
     "price not known: what policy team allows (40.00 USD per hour) cannot be held to; set spec.price of the GPUPool"},
    {Reason::ZonePinned, [](World& w) { w.pinned_zone = "zone-b"; }, "the checkpoint volume is in zone zone-b"},
    {Reason::VolumeNotShared,
     [](World& w) {
       w.job.spec.gpus->count = 16;
       w.claim = SeenClaim{"sft-checkpoint", {"ReadWriteOnce"}, ""};
     },
     "claim sft-checkpoint is ReadWriteOnce, and 2 nodes would write to it; copy its checkpoints to a ReadWriteMany "
     "claim and name that in spec.checkpoint.volume.claimName, or ask for GPUs of one node"},
    {Reason::VolumeNotShared,
     [](World& w) {
       w.job.spec.gpus->count = 16;
       w.job.spec.checkpoint->volume.emplace().accessModes = {"ReadWriteOnce", "ReadOnlyMany"};
     },
     "spec.checkpoint.volume.accessModes is ReadWriteOnce, ReadOnlyMany, and 2 nodes would write to it; ask for "
     "ReadWriteMany, or for GPUs of one node"},
    {Reason::StorageClassNotListed,
     [](World& w) {
       w.pools[0].spec.storage.emplace().classes = {"fast-rwx", "nfs"};
       w.claim = SeenClaim{"sft-checkpoint", {"ReadWriteMany"}, "standard"};
     },
     "claim sft-checkpoint is in StorageClass standard, the pool lists fast-rwx, nfs; add it to spec.storage.classes"},
    {Reason::StorageClassNotListed,
     [](World& w) {
       w.pools[0].spec.storage.emplace().classes = {"fast-rwx"};
       w.job.spec.checkpoint->volume.emplace().storageClassName = "standard";
     },
     "spec.checkpoint.volume.storageClassName asks for StorageClass standard, the pool lists fast-rwx"},
    {Reason::StorageClassNotListed,
     [](World& w) {
       w.pools[0].spec.storage.emplace().classes = {"fast-rwx"};
       w.policies = {policy()};
       w.policies[0].spec.checkpoint.emplace().defaultClass = "standard";
     },
     "policy team asks for StorageClass standard, the pool lists fast-rwx"},
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

}  // namespace
}  // namespace loadline::placement
