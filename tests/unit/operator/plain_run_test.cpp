// A job that nothing disturbs: what is made for it, what is shown, and that nothing is written for nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;
using testing::Contains;

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
  world.settle_running();
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
  world.settle_running();
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

}  // namespace
}  // namespace loadline::controller
