// A TrainingJob's life, told as scenarios: what Kubernetes and the user do, and what must come of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/names.h"
#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

TEST(PlainRun, IsSizedPlacedAndGivenItsChildren) {
  World world = two_pools_and_a_job();
  world.settle();
  EXPECT_EQ(world.phase(), "Starting");
  EXPECT_EQ(world.status()["placement"]["pool"], "spot");
  EXPECT_EQ(world.status()["attempt"], 1);
  EXPECT_EQ(world.condition("Admitted")["status"], "True");
  EXPECT_EQ(world.condition("Sized")["status"], "True");
  EXPECT_EQ(world.condition("Placed")["status"], "True");
  EXPECT_EQ(world.names(core::kJobs), std::set<std::string>{"llama-a1"});
  EXPECT_EQ(world.names(core::kServices), std::set<std::string>{"llama"});
  EXPECT_EQ(world.names(core::kConfigMaps), std::set<std::string>{"llama-a1-plan"});
  EXPECT_EQ(world.names(core::kPersistentVolumeClaims), std::set<std::string>{"llama-checkpoint"});
  EXPECT_EQ(world.created.front(), "llama-checkpoint") << "the volume is there before a promise is made";
}

TEST(PlainRun, ShowsRunningAndThenSuccess) {
  World world = two_pools_and_a_job();
  world.settle();
  world.run_gangs();
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.condition("Running")["status"], "True");
  world.pass(seconds(3600));
  world.finish_gang("llama-a1");
  world.settle();
  EXPECT_EQ(world.phase(), "Succeeded");
  EXPECT_EQ(world.condition("Succeeded")["status"], "True");
  EXPECT_EQ(world.condition("Finished")["status"], "True");
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Succeeded");
  EXPECT_THAT(world.told, Contains("Sized"));
  EXPECT_THAT(world.told, Contains("Succeeded"));
}

TEST(PlainRun, WritesNothingOnceSettled) {
  World world = two_pools_and_a_job();
  const auto quiet = [&](const char* when) {
    const Decision decision = world.look(world.job_key);
    EXPECT_TRUE(decision.actions.empty()) << when << ": " << World::dump(decision);
  };
  world.settle();
  quiet("starting");
  world.pass(seconds(20));
  quiet("starting, a while later");
  world.run_gangs();
  world.settle();
  world.pass(seconds(86400));
  quiet("running for a day");
  world.finish_gang("llama-a1");
  world.settle();
  world.pass(seconds(86400 * 3));
  quiet("succeeded");
}

TEST(PlainRun, StaysSucceededWhateverHappensToTheSpecOrTheNodes) {
  World world = two_pools_and_a_job();
  world.settle();
  world.run_gangs();
  world.settle();
  world.finish_gang("llama-a1");
  world.settle();
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"suspend", true}});
  world.reclaim_node("spot-0");
  world.settle();
  EXPECT_EQ(world.phase(), "Succeeded");
  EXPECT_EQ(world.status()["attempts"].size(), 1U);
}

TEST(PlainRun, ReadsProgressFromTheTrainersLog) {
  World world = two_pools_and_a_job();
  world.settle();
  world.run_gangs();
  world.log = "loading\n{\"step\": 100, \"loss\": 2.5}\n{\"step\": 1000, \"loss\": 2.1, \"checkpoint\": 900}\nnoise\n";
  world.settle();
  EXPECT_EQ(world.status()["progress"]["step"], 1000);
  EXPECT_EQ(world.status()["progress"]["percent"], "26%");
  EXPECT_EQ(world.status()["checkpoint"]["lastStep"], 900);
  EXPECT_TRUE(world.look(world.job_key).actions.empty()) << "the same step is no news";
}

TEST(Preemption, MovesTheGangToAnotherPoolWithTheSameClaim) {
  World world = two_pools_and_a_job();
  world.settle();
  world.run_gangs();
  world.settle();
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

TEST(Preemption, OfOneWorkersNodeEndsTheWholeGang) {
  json job = llama();
  job["spec"]["gpus"]["count"] = 16;
  World world;
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  world.add_node("spot-0", a100_labels("spot", true));
  world.add_node("spot-1", a100_labels("spot", true));
  world.put(resources::kTrainingJobs, job);
  world.settle();
  world.run_gangs();
  world.settle();
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
  world.settle();
  world.run_gangs();
  world.settle();
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
  world.settle();
  world.run_gangs();
  world.settle();
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
    world.settle();
    world.run_gangs();
    world.settle();
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

TEST(Failure, IsRetriedAfterAPauseThatDoubles) {
  World world = two_pools_and_a_job();
  world.settle();
  world.run_gangs();
  world.settle();
  world.fail_gang("llama-a1", 1, "ValueError: bad sample");
  world.settle();
  EXPECT_EQ(world.phase(), "Restarting");
  EXPECT_EQ(world.status()["attempt"], 1);
  ASSERT_TRUE(world.requeue);
  EXPECT_EQ(*world.requeue, seconds(10));
  world.pass(seconds(10));
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 2);
  world.run_gangs();
  world.settle();
  world.fail_gang("llama-a2", 1, "ValueError: bad sample");
  world.settle();
  ASSERT_TRUE(world.requeue);
  EXPECT_EQ(*world.requeue, seconds(20));
}

TEST(Failure, EndsTheJobAtTheLimitAndSaysWhy) {
  json job = llama();
  job["spec"]["restart"] = {{"maxFailures", 2}, {"backoff", "1s"}};
  World world = two_pools_and_a_job(job);
  for (int i = 1; i <= 2; ++i) {
    world.settle();
    world.run_gangs();
    world.settle();
    world.fail_gang("llama-a" + std::to_string(i), 1, "ValueError: bad sample 17");
    world.settle();
    world.pass(seconds(60));
  }
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")["reason"], "TooManyFailures");
  EXPECT_THAT(world.condition("Failed")["message"].get<std::string>(), HasSubstr("bad sample 17"));
  EXPECT_EQ(world.condition("Succeeded")["status"], "False");
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 2);
}

TEST(Failure, WaitsForBetterEvidenceWhileAPeerIsSilent) {
  json job = llama();
  job["spec"]["gpus"]["count"] = 16;
  World world;
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  world.add_node("spot-0", a100_labels("spot", true));
  world.add_node("spot-1", a100_labels("spot", true));
  world.put(resources::kTrainingJobs, job);
  world.settle();
  world.run_gangs();
  world.settle();
  world.pass(seconds(600));
  // Rank 1's machine is off; rank 0 only sees its connection break, and the Job fails for that.
  world.end_pod("llama-a1-0-x", "Failed", 1, "NCCL error: connection reset by peer");
  world.add_condition(core::kJobs, {"team", "llama-a1"}, "FailureTarget", "BackoffLimitExceeded", "");
  world.settle();
  EXPECT_FALSE(world.status()["attempts"][0].contains("cause"));
  world.pass(seconds(40));
  world.reclaim_node("spot-1");
  world.settle();
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Preempted");
  EXPECT_EQ(world.status()["endings"]["userFailures"], 0);
}

TEST(OutOfMemory, ChangesTheLayoutInsteadOfRepeatingIt) {
  World world = two_pools_and_a_job();
  world.settle();
  world.run_gangs();
  world.settle();
  const std::string first = world.status()["attempts"][0]["layout"];
  world.fail_gang("llama-a1", 1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB");
  world.settle();
  EXPECT_EQ(world.status()["endings"]["outOfMemory"], 1);
  if (world.phase() == "Failed") {
    EXPECT_EQ(world.condition("Failed")["reason"], "OutOfMemory");
  } else {
    ASSERT_EQ(world.status()["attempts"].size(), 2U);
    const bool same = world.status()["attempts"][1]["layout"] == first &&
                      world.status()["attempts"][1]["pool"] == world.status()["attempts"][0]["pool"];
    EXPECT_FALSE(same) << first;
  }
}

TEST(OutOfMemory, EndsTheJobWithAdviceWhenNothingElseIsLeft) {
  World world = two_pools_and_a_job();
  for (int i = 1; i <= 30 && world.phase() != "Failed"; ++i) {
    world.settle();
    world.run_gangs();
    world.settle();
    world.fail_gang("llama-a" + std::to_string(i), 1, "torch.OutOfMemoryError: CUDA out of memory.");
    world.settle();
    world.pass(seconds(60));
  }
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")["reason"], "OutOfMemory");
}

TEST(OutOfMemory, OfTheHostFailsTheJobAndNamesTheLimit) {
  World world = two_pools_and_a_job();
  world.settle();
  world.run_gangs();
  world.settle();
  world.fail_gang("llama-a1", 137, "", "OOMKilled");
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_THAT(world.condition("Failed")["message"].get<std::string>(), HasSubstr("now 900Gi"));
}

TEST(Suspend, EndsTheGangKeepsTheClaimAndGoesOnLater) {
  World world = two_pools_and_a_job();
  world.settle();
  world.run_gangs();
  world.settle();
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

TEST(Suspend, FromTheStartHoldsNothing) {
  json job = llama();
  job["spec"]["suspend"] = true;
  World world = two_pools_and_a_job(job);
  world.settle();
  EXPECT_EQ(world.phase(), "Suspended");
  EXPECT_TRUE(world.created.empty());
}

TEST(Deadline, EndsTheJob) {
  json job = llama();
  job["spec"]["activeDeadlineSeconds"] = 3600;
  World world = two_pools_and_a_job(job);
  world.settle();
  world.run_gangs();
  world.settle();
  world.pass(seconds(3601));
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")["reason"], "DeadlineExceeded");
  EXPECT_TRUE(world.names(core::kJobs).empty());
}

TEST(Start, ThatNeverComesEndsTheAttemptAsInfrastructure) {
  World world = two_pools_and_a_job();
  world.settle();
  world.remove(core::kNodes, {"", "spot-0"});
  world.run_gangs();
  world.settle();
  EXPECT_EQ(world.phase(), "Starting");
  world.pass(seconds(601));
  world.settle();
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Infrastructure");
  EXPECT_THAT(world.status()["attempts"][0]["detail"].get<std::string>(), HasSubstr("0 of 1 pods"));
}

TEST(TimeToLive, DeletesAFinishedJobInTimeWithoutAnyOtherEvent) {
  json job = llama();
  job["spec"]["ttlSecondsAfterFinished"] = 60;
  World world = two_pools_and_a_job(job);
  world.settle();
  world.run_gangs();
  world.settle();
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
    world.settle();
    world.run_gangs();
    world.settle();
    world.remove(resources::kTrainingJobs, world.job_key);
    world.settle();
    world.end_deleted_pods();
    world.settle();
    EXPECT_FALSE(world.has(resources::kTrainingJobs, world.job_key));
    EXPECT_TRUE(world.names(core::kJobs).empty());
    EXPECT_EQ(world.has(core::kPersistentVolumeClaims, {"team", "llama-checkpoint"}), !told);
  }
}

TEST(Deletion, WaitsForThePodsBeforeItTakesTheClaim) {
  json job = llama();
  job["spec"]["checkpoint"]["volume"]["retain"] = "Delete";
  World world = two_pools_and_a_job(job);
  world.settle();
  world.run_gangs();
  world.settle();
  world.remove(resources::kTrainingJobs, world.job_key);
  world.settle();
  EXPECT_TRUE(world.has(core::kPersistentVolumeClaims, {"team", "llama-checkpoint"}));
  EXPECT_TRUE(world.has(resources::kTrainingJobs, world.job_key));
}

TEST(Replacement, UnderTheSameNameDoesNotTakeOverTheOldJobsChildren) {
  World world = two_pools_and_a_job();
  world.settle();
  world.run_gangs();
  world.settle();
  world.remove(resources::kTrainingJobs, world.job_key);
  world.put(resources::kTrainingJobs, llama());
  world.settle();
  EXPECT_EQ(world.phase(), "Waiting");
  EXPECT_EQ(world.condition("CheckpointReady")["reason"], "ClaimOfEarlierJob");
  EXPECT_FALSE(world.status().contains("attempt"));
  world.edit_spec(resources::kTrainingJobs, world.job_key,
                  {{"checkpoint", {{"volume", {{"claimName", "llama-checkpoint"}}}}}});
  world.end_deleted_pods();
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 1);
}

TEST(TwoJobs, AreNeverPromisedTheSameGpus) {
  World world;
  world.put(resources::kGPUPools, a100_pool("steady", false, "2.40"));
  world.add_node("steady-0", a100_labels("steady", false));
  world.put(resources::kTrainingJobs, llama("one"));
  world.put(resources::kTrainingJobs, llama("two"));
  const kube::ObjectKey one{"team", "one"}, two{"team", "two"};
  world.settle(one);  // promised, but without a pod yet
  world.settle(two);
  EXPECT_EQ(world.status(one)["phase"], "Starting");
  EXPECT_EQ(world.status(two)["phase"], "Waiting");
  EXPECT_EQ(world.condition(two, "Placed")["reason"], "NoFreeGPUs");
  world.run_gangs();
  world.settle(one);
  world.finish_gang("one-a1");
  world.settle(one);
  world.settle(two);
  EXPECT_EQ(world.status(two)["phase"], "Starting");
}

TEST(Garbage, InOneJobIsSaidOnItAndHurtsNoOther) {
  for (const char* spec :
       {R"({"gpus": {"count": -3}})", R"({"gpus": {"count": 1000000000000}})", R"({"model": 7})",
        R"({"training": {"sequenceLength": -1}})", R"({"template": null})", R"({"model": {"preset": "no-such-model"}})",
        R"({"checkpoint": {"volume": {"claimName": "../other/claim"}}})"}) {
    json bad = llama("bad");
    bad["spec"].merge_patch(json::parse(spec));
    World world = two_pools_and_a_job();
    world.put(resources::kTrainingJobs, bad);
    const kube::ObjectKey key{"team", "bad"};
    world.settle(key);
    EXPECT_EQ(world.status(key)["phase"], "Invalid") << spec;
    EXPECT_EQ(world.condition(key, "Admitted")["status"], "False") << spec;
    EXPECT_TRUE(world.created.empty()) << spec;
    world.settle();
    EXPECT_EQ(world.phase(), "Starting") << spec;
  }
}

TEST(Garbage, InTheStatusIsOverwritten) {
  json job = llama();
  job["status"] = {{"attempts", "many"}, {"phase", 7}};
  World world = two_pools_and_a_job(job);
  world.settle();
  EXPECT_EQ(world.phase(), "Starting");
}

TEST(Garbage, IsAcceptedOnceItIsMended) {
  json job = llama();
  job["spec"]["gpus"]["count"] = -3;
  World world = two_pools_and_a_job(job);
  world.settle();
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"gpus", {{"count", 8}}}});
  world.settle();
  EXPECT_EQ(world.phase(), "Starting");
  EXPECT_EQ(world.condition("Admitted")["status"], "True");
}

TEST(Admission, ThatWasBypassedIsMadeUpFor) {
  json job = llama();
  job["spec"]["model"]["preset"] = "llama-3.1-405b";
  World world = two_pools_and_a_job(job);
  world.settle();
  EXPECT_EQ(world.condition("Admitted")["status"], "False");
  EXPECT_EQ(world.phase(), "Invalid");
  EXPECT_TRUE(world.created.empty());
  EXPECT_THAT(world.told, Contains("Refused"));
}

TEST(Admission, RefusesWhatNothingActsOnEvenWhenTheWebhookDidNot) {
  const std::vector<std::pair<json, std::string>> asked = {{{{"queueName", "gpu-queue"}}, "spec.queueName"},
                                                           {{{"launcher", "mpi"}}, "spec.launcher"},
                                                           {{{"launcher", "jax"}}, "spec.launcher"}};
  for (const auto& [spec, field] : asked) {
    json job = llama();
    job["spec"].update(spec);
    World world = two_pools_and_a_job(job);
    world.settle();
    EXPECT_EQ(world.phase(), "Invalid") << spec;
    EXPECT_THAT(world.condition("Admitted").value("message", ""), HasSubstr("not supported yet: " + field));
    EXPECT_TRUE(world.created.empty()) << spec;
  }
}

TEST(Admission, SaysAllAtOnceEvenOfASpecThatCannotBeRead) {
  json job = llama();
  job["spec"]["queueName"] = "gpu-queue";
  job["spec"]["gpus"]["count"] = "eight";
  World world = two_pools_and_a_job(job);
  world.settle();
  EXPECT_THAT(world.condition("Admitted").value("message", ""),
              AllOf(HasSubstr("not supported yet: spec.queueName"), HasSubstr("spec.gpus.count")));
}

TEST(History, IsBoundedAndItsCountersAreNot) {
  World world = two_pools_and_a_job();
  for (int i = 1; i <= 25; ++i) {
    world.settle();
    world.run_gangs();
    world.settle();
    world.pass(seconds(4000));
    const kube::ObjectKey key{"team", "llama-a" + std::to_string(i)};
    ASSERT_TRUE(world.has(core::kJobs, key)) << i << " " << world.status().dump(1);
    for (const kube::Object& pod : world.pods_of(world.get(core::kJobs, key).uid())) {
      world.end_pod(pod.name(), "Failed", 143, "");
    }
    world.add_condition(core::kJobs, key, "Failed", "PodFailurePolicy", std::string(5000, 'x'));
    world.settle();
  }
  EXPECT_LE(world.status()["attempts"].size(), 10U);
  const json endings = world.status()["endings"];
  EXPECT_EQ(endings["preemptions"].get<int>() + endings["infrastructure"].get<int>(), 25);
  EXPECT_LT(world.status().dump().size(), 32U * 1024);
}

}  // namespace
}  // namespace loadline::controller
