// Two jobs that want the same thing: the same GPUs, or the same name one after the other.

#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

TEST(Replacement, UnderTheSameNameDoesNotTakeOverTheOldJobsChildren) {
  World world = two_pools_and_a_job();
  world.settle_running();
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

TEST(TwoJobs, NoneStartsWhileAWatchIsBrokenAndTheEndOfAnAttemptIsRecordedAllTheSame) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.pass(std::chrono::seconds(600));
  world.watch_broken = true;
  world.reclaim_node("spot-0");
  world.settle();
  world.end_deleted_pods();
  world.settle();
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Preempted");
  EXPECT_EQ(world.status()["attempt"], 1);
  EXPECT_EQ(world.phase(), "Waiting");
  EXPECT_EQ(world.condition("Placed")["reason"], "OutOfTouch");
  ASSERT_TRUE(world.requeue);
  EXPECT_LE(*world.requeue, std::chrono::seconds(1));
  world.watch_broken = false;
  world.settle_running();
  EXPECT_EQ(world.status()["attempt"], 2);
  EXPECT_EQ(world.phase(), "Running");
}

TEST(TwoJobs, FactsThatAWatchMendedSinceMayHaveChangedPromiseNothing) {
  World world = two_pools_and_a_job();
  world.watch_broken = true;
  const auto seen = observe(
      world,
      [&] {
        auto facts = cluster_facts(world, world.now);
        world.watch_broken = false;
        return facts;
      },
      world.job_key, world.now);
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->in_touch);
}

}  // namespace
}  // namespace loadline::controller
