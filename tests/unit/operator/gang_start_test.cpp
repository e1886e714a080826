// The Job of an attempt is made suspended and started in a second step, so that a create which arrives too late, as
// that of a leader that was stopped in the middle of it does, starts no pod.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using testing::HasSubstr;

const kube::ObjectKey kFirst{"team", "llama-a1"};

bool started(const World& world) {
  const kube::Object job = world.get(core::kJobs, kFirst);
  return job && !kube::bool_at(job.json(), {"spec", "suspend"}).value_or(false);
}

/// Plays to the point at which the Job of attempt 1 is to be created, carries that out, and gives the request.
Action first_create(World& world) {
  for (int round = 0; round < 30; ++round) {
    for (const Action& action : world.look(world.job_key).actions) {
      if (!world.carry_out(action)) break;
      const auto* create = std::get_if<Create>(&action);
      if (create != nullptr && create->resource.plural == core::kJobs.plural) return action;
    }
  }
  ADD_FAILURE() << "no Job is created";
  return Tell{};
}

TEST(GangStart, ComesAfterTheJobsUidIsOnRecord) {
  World world = two_pools_and_a_job();
  int starts = 0;
  world.after_write = [&starts](const World& now) {
    if (!started(now)) return;
    ++starts;
    EXPECT_EQ(now.status()["attempts"][0]["jobUID"], now.get(core::kJobs, kFirst).uid());
  };
  first_create(world);
  EXPECT_FALSE(started(world));
  world.run_gangs();
  EXPECT_TRUE(world.names(core::kPods).empty());
  world.settle_running();
  EXPECT_GT(starts, 0);
  EXPECT_EQ(world.phase(), "Running");
}

TEST(GangStart, DoesNotComeOfACreateThatArrivesAfterItsAttempt) {
  World world = two_pools_and_a_job();
  const Action late = first_create(world);
  world.settle_running();
  world.pass(std::chrono::seconds(600));
  world.reclaim_node("spot-0");
  world.settle();
  world.end_deleted_pods();
  world.settle_running();
  ASSERT_EQ(world.status()["attempt"], 2);
  ASSERT_TRUE(world.carry_out(late));
  world.run_gangs();
  EXPECT_TRUE(world.pods_of(world.get(core::kJobs, kFirst).uid()).empty());
  world.settle();
  EXPECT_EQ(world.names(core::kJobs), std::set<std::string>{"llama-a2"});
  EXPECT_EQ(world.phase(), "Running");
}

TEST(GangStart, DoesNotComeOfACreateThatArrivesAfterItsJobWasDeleted) {
  World world = two_pools_and_a_job();
  const Action late = first_create(world);
  world.settle_running();
  world.remove(core::kJobs, kFirst);
  ASSERT_TRUE(world.carry_out(late));
  world.settle();
  EXPECT_FALSE(started(world));
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Infrastructure");
  EXPECT_THAT(world.status()["attempts"][0].value("detail", ""), HasSubstr("deleted from outside"));
}

}  // namespace
}  // namespace loadline::controller
