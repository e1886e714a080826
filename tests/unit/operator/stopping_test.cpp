// A job that is told to stop: suspended, out of time, deleted; and what becomes of its checkpoint claim.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;

TEST(Suspend, EndsTheGangKeepsTheClaimAndGoesOnLater) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"suspend", true}});
  world.settle();
  EXPECT_EQ(world.phase(), "Suspended");
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Suspended");
  EXPECT_TRUE(world.names(core::kJobs).empty());
  EXPECT_TRUE(world.has(core::kPersistentVolumeClaims, {"team", "llama-checkpoint"}));
  world.end_deleted_pods();
  world.settle();
  EXPECT_EQ(world.condition("Suspended")["status"], "True");
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"suspend", false}});
  world.settle();
  EXPECT_EQ(world.condition("Suspended")["status"], "False");
  EXPECT_EQ(world.status()["attempt"], 2);
  EXPECT_EQ(world.status()["endings"]["userFailures"], 0);
}

/// A queue that changes a job while the operator is down: only the outcome is left to see.
TEST(Suspend, ThatNobodySawStillMakesWayForTheSpecThatWasChanged) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"gpus", {{"count", 4}}}});
  world.settle();
  const json first = world.status()["attempts"][0];
  ASSERT_EQ(first.value("cause", ""), "Suspended");
  EXPECT_THAT(first["detail"].get<std::string>(), HasSubstr("spec was changed while the operator did not look"));
  EXPECT_THAT(world.told, Contains("SpecChanged"));
  EXPECT_TRUE(world.names(core::kJobs).empty());
  world.end_deleted_pods();
  world.settle_running();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.status()["attempts"][1]["gpus"], 4);
  EXPECT_NE(world.status()["attempts"][1]["specHash"], first["specHash"]);
}

TEST(Suspend, ThatNobodySawLeavesAGangOfTheSameSpecAlone) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.edit_spec(resources::kTrainingJobs, world.job_key,
                  {{"suspend", false}, {"activeDeadlineSeconds", 86400}, {"ttlSecondsAfterFinished", 60}});
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.status()["attempt"], 1);
}

TEST(Suspend, ThatNobodySawIsNotReadIntoARecordOfAnOlderVersion) {
  World world = two_pools_and_a_job();
  world.settle_running();
  json& job = world.at(resources::kTrainingJobs, world.job_key);
  job["status"]["attempts"][0].erase("specHash");
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"gpus", {{"count", 4}}}});
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
}

/// The API server fills them into what it reads from its store, and the generation stays.
TEST(Suspend, IsNotReadIntoTheDefaultsOfANewerSchema) {
  World world = two_pools_and_a_job();
  world.settle_running();
  json& job = world.at(resources::kTrainingJobs, world.job_key);
  job["spec"]["training"]["attention"] = "flash";
  world.touch(job);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
}

TEST(Suspend, FromTheStartHoldsNothingAndIsSized) {
  json job = llama();
  job["spec"]["suspend"] = true;
  World world = two_pools_and_a_job(job);
  world.settle();
  EXPECT_EQ(world.phase(), "Suspended");
  EXPECT_TRUE(world.created.empty());
  EXPECT_EQ(world.condition("Admitted")["status"], "True");
  EXPECT_EQ(world.condition("Sized")["status"], "True");
  EXPECT_THAT(world.status()["sizing"]["summary"].get<std::string>(), HasSubstr("GiB per GPU on 8 GPUs"));
  EXPECT_FALSE(world.status()["sizing"]["explanation"].empty());
  EXPECT_FALSE(world.status().contains("placement")) << "nothing is promised";
  EXPECT_THAT(world.told, Contains("Sized"));
}

TEST(Suspend, IsTheTimeToChangeTheSpecAndSeeWhatItNeedsThen) {
  json job = llama();
  job["spec"]["suspend"] = true;
  World world = two_pools_and_a_job(job);
  world.settle();
  const json before = world.status()["sizing"]["requiredMiBPerGPU"];
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"training", {{"sequenceLength", 8192}}}});
  world.settle();
  EXPECT_GT(world.status()["sizing"]["requiredMiBPerGPU"].get<int>(), before.get<int>());
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"model", {{"preset", "llama-3.1-405b"}}}});
  world.settle();
  EXPECT_EQ(world.phase(), "Suspended");
  EXPECT_EQ(world.condition("Sized")["reason"], "InsufficientMemory");
  EXPECT_EQ(world.condition("Suspended")["status"], "True");
}

TEST(Suspend, IsSizedOnceThereIsAPool) {
  json job = llama();
  job["spec"]["suspend"] = true;
  World world;
  world.put(resources::kTrainingJobs, job);
  world.settle();
  EXPECT_EQ(world.condition("Sized")["reason"], "NoPools");
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  world.add_node("spot-0", a100_labels("spot", true));
  world.settle();
  EXPECT_EQ(world.condition("Sized")["status"], "True");
}

TEST(Deadline, EndsTheJob) {
  json job = llama();
  job["spec"]["activeDeadlineSeconds"] = 3600;
  World world = two_pools_and_a_job(job);
  world.settle_running();
  world.pass(seconds(3601));
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")["reason"], "DeadlineExceeded");
  EXPECT_TRUE(world.names(core::kJobs).empty());
}

TEST(TimeToLive, DeletesAFinishedJobInTimeWithoutAnyOtherEvent) {
  json job = llama();
  job["spec"]["ttlSecondsAfterFinished"] = 60;
  World world = two_pools_and_a_job(job);
  world.settle_running();
  world.finish_gang("llama-a1");
  world.settle();
  ASSERT_TRUE(world.requeue);
  EXPECT_LE(*world.requeue, seconds(60));
  world.pass(seconds(61));
  world.settle();
  EXPECT_FALSE(world.has(resources::kTrainingJobs, world.job_key));
  EXPECT_TRUE(world.has(core::kPersistentVolumeClaims, {"team", "llama-checkpoint"})) << "checkpoints outlive the job";
}

TEST(Deletion, WhileRunningTakesTheClaimOnlyWhenToldTo) {
  for (const bool told : {false, true}) {
    json job = llama();
    if (told) job["spec"]["checkpoint"]["volume"]["retain"] = "Delete";
    World world = two_pools_and_a_job(job);
    world.settle_running();
    const kube::Object stored = world.get(resources::kTrainingJobs, world.job_key);
    EXPECT_EQ(stored.has_finalizer(api::kFinalizer), told) << "a job whose claim stays needs nobody to delete it";
    world.remove(resources::kTrainingJobs, world.job_key);
    world.settle();
    world.end_deleted_pods();
    world.settle();
    EXPECT_FALSE(world.has(resources::kTrainingJobs, world.job_key));
    EXPECT_TRUE(world.names(core::kJobs).empty());
    EXPECT_EQ(world.has(core::kPersistentVolumeClaims, {"team", "llama-checkpoint"}), !told);
  }
}

TEST(Deletion, OfAJobThatFailedKeepsTheCheckpointsThatOneOfASuccessTakesAlong) {
  for (const int code : {0, 1}) {
    json job = llama();
    job["spec"]["checkpoint"]["volume"]["retain"] = "RetainOnFailure";
    job["spec"]["restart"] = {{"maxFailures", 0}};
    World world = two_pools_and_a_job(job);
    world.settle_running();
    if (code == 0) {
      world.finish_gang("llama-a1");
    } else {
      world.fail_gang("llama-a1", code, "ValueError: bad sample");
    }
    world.settle();
    ASSERT_EQ(world.phase(), code == 0 ? "Succeeded" : "Failed");
    world.remove(resources::kTrainingJobs, world.job_key);
    world.settle();
    EXPECT_FALSE(world.has(resources::kTrainingJobs, world.job_key));
    EXPECT_EQ(world.has(core::kPersistentVolumeClaims, {"team", "llama-checkpoint"}), code != 0);
  }
}

TEST(Deletion, KeepsTheCheckpointsOfAJobThatWasToldToKeepThemLater) {
  json job = llama();
  job["spec"]["checkpoint"]["volume"]["retain"] = "Delete";
  World world = two_pools_and_a_job(job);
  world.settle_running();
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"checkpoint", {{"volume", {{"retain", "Retain"}}}}}});
  world.remove(resources::kTrainingJobs, world.job_key);
  world.settle();
  world.end_deleted_pods();
  world.settle();
  EXPECT_FALSE(world.has(resources::kTrainingJobs, world.job_key));
  EXPECT_TRUE(world.has(core::kPersistentVolumeClaims, {"team", "llama-checkpoint"}));
}

TEST(Deletion, ThatIsSeenByTheChildrenFirstMakesNoneAnew) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.remove(core::kServices, {"team", "llama"});
  world.remove(core::kConfigMaps, {"team", "llama-a1-plan"});
  world.job_is_gone = true;
  EXPECT_TRUE(world.look(world.job_key).actions.empty());
  world.job_is_gone = false;
  world.settle();
  EXPECT_EQ(world.names(core::kServices), std::set<std::string>{"llama"}) << "what somebody deletes is made again";
  EXPECT_EQ(world.names(core::kConfigMaps), std::set<std::string>{"llama-a1-plan"});
}

TEST(Deletion, WaitsForThePodsBeforeItTakesTheClaim) {
  json job = llama();
  job["spec"]["checkpoint"]["volume"]["retain"] = "Delete";
  World world = two_pools_and_a_job(job);
  world.settle_running();
  world.remove(resources::kTrainingJobs, world.job_key);
  world.settle();
  EXPECT_TRUE(world.has(core::kPersistentVolumeClaims, {"team", "llama-checkpoint"}));
  EXPECT_TRUE(world.has(resources::kTrainingJobs, world.job_key));
}

}  // namespace
}  // namespace loadline::controller
