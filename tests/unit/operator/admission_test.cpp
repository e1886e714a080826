// What a stored job may not say, whether the webhook saw it or not, and how that is told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

TEST(Garbage, InOneJobIsSaidOnItAndHurtsNoOther) {
  for (const char* spec :
       {R"({"gpus": {"count": -3}})", R"({"gpus": {"count": 1000000000000}})", R"({"model": 7})",
        R"({"training": {"sequenceLength": -1}})", R"({"template": null})", R"({"model": {"preset": "no-such-model"}})",
        R"({"checkpoint": {"volume": {"claimName": "../other/claim"}}})",
        R"({"checkpoint": {"volume": {"size": "a lot"}}})", R"({"checkpoint": {"interval": "often"}})"}) {
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

/// As an upgrade with stricter rules leaves it.
TEST(Admission, RefusedSinceIsFollowedToItsEndAndStartsNothing) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"queueName", "gpu-queue"}});
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.condition("Admitted")["reason"], "Invalid");
  World finishes = world;
  finishes.finish_gang("llama-a1");
  finishes.settle();
  EXPECT_EQ(finishes.phase(), "Succeeded");
  world.reclaim_node("spot-0");
  world.settle();
  EXPECT_EQ(world.phase(), "Invalid");
  EXPECT_EQ(world.status()["endings"]["preemptions"], 1);
  EXPECT_TRUE(world.names(core::kJobs).empty());
  world.end_deleted_pods();
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"queueName", nullptr}});
  world.settle_running();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.status()["attempt"], 2);
}

TEST(Admission, RefusedBeforeTheGangWasMadeGivesItsPromiseBack) {
  World world = two_pools_and_a_job();
  while (!world.status().contains("attempts")) {
    const Decision decision = world.look(world.job_key);
    for (const Action& action : decision.actions) {
      if (!world.carry_out(action) || std::holds_alternative<WriteStatus>(action)) break;
    }
  }
  world.edit_spec(resources::kTrainingJobs, world.job_key, {{"queueName", "gpu-queue"}});
  world.settle();
  EXPECT_EQ(world.phase(), "Invalid");
  EXPECT_TRUE(world.names(core::kJobs).empty());
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Infrastructure");
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

}  // namespace
}  // namespace loadline::controller
