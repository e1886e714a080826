// A checkpoint claim that the next gang could not mount: the job waits and says what to do, instead of starting pods
// that hang.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

const kube::ObjectKey kClaim{"team", "llama-checkpoint"};

World spot_pool(int nodes, const json& job = llama()) {
  World world;
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  for (int i = 0; i < nodes; ++i) world.add_node("spot-" + std::to_string(i), a100_labels("spot", true));
  world.put(resources::kTrainingJobs, job);
  return world;
}

json sixteen_gpus() {
  json job = llama();
  job["spec"]["gpus"]["count"] = 16;
  return job;
}

/// A pool whose nodes have four GPUs each.
void add_small_nodes(World& world) {
  json pool = a100_pool("small", false, "2.40");
  pool["spec"]["gpu"]["perNode"] = 4;
  world.put(resources::kGPUPools, pool);
  json labels = a100_labels("small", false);
  labels.merge_patch({{"nvidia.com/gpu.count", "4"}, {"node.kubernetes.io/instance-type", "a2-ultragpu-4g"}});
  for (const char* node : {"small-0", "small-1"}) world.add_node(node, labels, "4");
}

void lose_the_gang(World& world, const char* node) {
  world.pass(seconds(600));
  world.reclaim_node(node);
  world.settle();
  world.end_deleted_pods();
  world.settle();
}

void put_claim(World& world, const std::string& mode) {
  world.put(core::kPersistentVolumeClaims, {{"metadata", {{"name", "mine"}, {"namespace", "team"}}},
                                            {"spec", {{"accessModes", json::array({mode})}}}});
}

TEST(Claim, OfOneNodeIsNotGivenToAResumedGangOfTwo) {
  World world = spot_pool(2);
  world.settle_running();
  ASSERT_EQ(world.at(core::kPersistentVolumeClaims, kClaim)["spec"]["accessModes"], json::array({"ReadWriteOnce"}));
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"suspend", true}});
  world.settle();
  world.end_deleted_pods();
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"suspend", false}, {"gpus", {{"count", 16}}}});
  world.settle();
  EXPECT_EQ(world.phase(), "Waiting");
  EXPECT_EQ(world.status()["attempt"], 1);
  EXPECT_EQ(world.condition("Placed")["reason"], "VolumeNotShared");
  EXPECT_THAT(world.condition("Placed").value("message", ""),
              AllOf(HasSubstr("claim llama-checkpoint is ReadWriteOnce, and 2 nodes would write to it"),
                    HasSubstr("spec.checkpoint.volume.claimName")));
  // Copied elsewhere or given up: the next one is made for the gang that there is now.
  world.remove(core::kPersistentVolumeClaims, kClaim);
  world.settle_running();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.at(core::kPersistentVolumeClaims, kClaim)["spec"]["accessModes"], json::array({"ReadWriteMany"}));
}

TEST(Claim, OfOneNodeKeepsAPreemptedGangFromAPoolOfSmallerNodes) {
  World world = spot_pool(1);
  world.settle_running();
  add_small_nodes(world);
  lose_the_gang(world, "spot-0");
  EXPECT_EQ(world.phase(), "Waiting");
  EXPECT_EQ(world.status()["attempt"], 1);
  EXPECT_THAT(world.condition("Placed").value("message", ""), HasSubstr("llama-checkpoint is ReadWriteOnce"));
  world.add_node("spot-1", a100_labels("spot", true));
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 2);
  EXPECT_EQ(world.status()["placement"]["pool"], "spot");
}

TEST(Claim, OfTheUserForOneNodeRefusesAGangOfTwo) {
  json job = sixteen_gpus();
  job["spec"]["checkpoint"]["volume"]["claimName"] = "mine";
  for (const bool shared : {false, true}) {
    World world = spot_pool(2, job);
    put_claim(world, shared ? "ReadWriteMany" : "ReadWriteOnce");
    world.settle();
    EXPECT_EQ(world.phase(), shared ? "Starting" : "Invalid");
    EXPECT_EQ(world.names(core::kJobs).empty(), !shared);
    if (shared) continue;
    EXPECT_THAT(world.condition("Admitted").value("message", ""),
                AllOf(HasSubstr("spec.checkpoint.volume.claimName"), HasSubstr("claim mine is ReadWriteOnce")));
  }
}

TEST(Claim, OfAClassThatTheNextPoolDoesNotListIsNotTakenThere) {
  World world = two_pools_and_a_job();
  world.settle_running();
  json& claim = world.at(core::kPersistentVolumeClaims, kClaim);
  claim["spec"]["storageClassName"] = "spot-only";
  world.touch(claim);
  World lists_none = world;
  lose_the_gang(world, "spot-0");
  EXPECT_EQ(world.phase(), "Waiting");
  EXPECT_EQ(world.status()["attempt"], 1);
  EXPECT_THAT(world.condition("Placed").value("message", ""),
              HasSubstr("claim llama-checkpoint is in StorageClass spot-only, the pool lists fast-rwx"));
  lists_none.edit_spec(resources::kGPUPools, {"", "steady"}, {{"storage", {{"classes", nullptr}}}});
  lose_the_gang(lists_none, "spot-0");
  EXPECT_EQ(lists_none.status()["placement"]["pool"], "steady");
  EXPECT_EQ(lists_none.status()["attempt"], 2);
}

TEST(Claim, ThatIsNotTheJobsOwnIsStillToldAsSuchAndNotByItsMode) {
  World world = spot_pool(2, sixteen_gpus());
  world.put(core::kPersistentVolumeClaims, {{"metadata", {{"name", "llama-checkpoint"}, {"namespace", "team"}}},
                                            {"spec", {{"accessModes", json::array({"ReadWriteOnce"})}}}});
  world.settle();
  EXPECT_EQ(world.phase(), "Waiting");
  EXPECT_EQ(world.condition("CheckpointReady")["reason"], "ClaimOfEarlierJob");
}

}  // namespace
}  // namespace loadline::controller
