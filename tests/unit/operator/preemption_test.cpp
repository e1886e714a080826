// A gang whose machine is taken away: it goes on elsewhere, whole, from its checkpoint, and nobody is blamed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;

TEST(Preemption, MovesTheGangToAnotherPoolWithTheSameClaim) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.pass(seconds(600));
  world.reclaim_node("spot-0");
  world.settle();
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Preempted");
  EXPECT_THAT(world.status()["attempts"][0]["detail"].get<std::string>(), HasSubstr("spot-0"));
  world.end_deleted_pods();
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 2);
  EXPECT_EQ(world.status()["placement"]["pool"], "steady");
  EXPECT_EQ(world.status()["endings"]["preemptions"], 1);
  EXPECT_EQ(world.names(core::kPersistentVolumeClaims), std::set<std::string>{"llama-checkpoint"});
  const json& job = world.at(core::kJobs, {"team", "llama-a2"});
  EXPECT_EQ(job["spec"]["template"]["spec"]["volumes"][1]["persistentVolumeClaim"]["claimName"], "llama-checkpoint");
  world.run_gangs();
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_THAT(world.told, Contains("Resumed"));
  world.finish_gang("llama-a2");
  world.settle();
  EXPECT_EQ(world.phase(), "Succeeded");
}

TEST(Preemption, IsSeenAtOnceEvenOfAGangThatHasJustBegun) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.pass(seconds(1));
  world.reclaim_node("spot-0");
  world.settle();
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Preempted");
}

TEST(Preemption, OfOneWorkersNodeEndsTheWholeGang) {
  json job = llama();
  job["spec"]["gpus"]["count"] = 16;
  World world;
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  world.add_node("spot-0", a100_labels("spot", true));
  world.add_node("spot-1", a100_labels("spot", true));
  world.put(resources::kTrainingJobs, job);
  world.settle_running();
  ASSERT_EQ(world.phase(), "Running");
  world.pass(seconds(600));
  world.reclaim_node("spot-1");
  world.settle();
  EXPECT_FALSE(world.has(core::kJobs, {"team", "llama-a1"})) << "rank 0 is not left to wait for its peer";
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Preempted");
}

TEST(Preemption, WaitsForSurvivingPodsBeforeTheNextAttempt) {
  json job = llama();
  job["spec"]["gpus"]["count"] = 16;
  World world;
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  for (const char* node : {"spot-0", "spot-1", "spot-2", "spot-3"}) world.add_node(node, a100_labels("spot", true));
  world.put(resources::kTrainingJobs, job);
  world.settle_running();
  world.pass(seconds(600));
  world.reclaim_node("spot-0");
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 1) << "a survivor may still be writing its checkpoint";
  EXPECT_EQ(world.phase(), "Restarting");
  world.end_deleted_pods();
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 2);
}

TEST(Preemption, WaitsWhenNoOtherPoolHasRoom) {
  World world;
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  world.add_node("spot-0", a100_labels("spot", true));
  world.put(resources::kTrainingJobs, llama());
  world.settle_running();
  world.pass(seconds(600));
  world.reclaim_node("spot-0");
  world.settle();
  world.end_deleted_pods();
  world.settle();
  EXPECT_EQ(world.phase(), "Waiting");
  EXPECT_EQ(world.condition("Running")["status"], "False");
  EXPECT_EQ(world.status()["attempt"], 1);
  world.add_node("spot-1", a100_labels("spot", true));
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 2);
}

TEST(Preemption, StaysInTheZoneOfTheCheckpointVolume) {
  World world = two_pools_and_a_job();
  world.put(resources::kGPUPools, a100_pool("cheap", false, "0.90"));
  world.settle();
  world.run_gangs();
  world.bind_claim("llama-checkpoint", "us-central1-a");
  world.settle();
  EXPECT_EQ(world.status()["checkpoint"]["zone"], "us-central1-a");
  world.pass(seconds(600));
  world.add_node("cheap-0", a100_labels("cheap", false, "us-central1-b"));
  world.reclaim_node("spot-0");
  world.settle();
  world.end_deleted_pods();
  world.settle();
  EXPECT_EQ(world.status()["placement"]["pool"], "steady") << "cheap lies in another zone";
}

TEST(Preemption, IsNotCountedAsAFailureOfTheTrainer) {
  json job = llama();
  job["spec"]["restart"]["maxFailures"] = 2;
  World world = two_pools_and_a_job(job);
  for (int i = 1; i <= 5; ++i) {
    world.settle_running();
    world.pass(seconds(4000));
    const std::string pool = world.status()["placement"]["pool"];
    const std::string job_name = "llama-a" + std::to_string(i);
    const kube::Object batch = world.get(core::kJobs, {"team", job_name});
    for (const kube::Object& pod : world.pods_of(batch.uid())) {
      world.end_pod(pod.name(), "Failed", 143, "");
      world.add_condition(core::kPods, pod.key(), "DisruptionTarget", "PreemptionByScheduler", "made room");
    }
    world.add_condition(core::kJobs, batch.key(), "Failed", "PodFailurePolicy", "pod was preempted");
    world.settle();
  }
  EXPECT_EQ(world.status()["endings"]["preemptions"], 5);
  world.run_gangs();
  world.settle();
  world.fail_gang("llama-a6", 1, "ValueError: bad sample");
  world.settle();
  EXPECT_EQ(world.status()["endings"]["userFailures"], 1);
  EXPECT_NE(world.phase(), "Failed");
}

}  // namespace
}  // namespace loadline::controller
