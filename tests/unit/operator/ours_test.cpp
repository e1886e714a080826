// Jobs that are not ours to touch: delegated to another controller, or in a namespace that opted out.

#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;

TEST(Delegation, ToAnotherControllerMeansNoWrites) {
  for (const char* manager : {"kueue.x-k8s.io/multikueue", "Loadline", "loadline.dev/operator2"}) {
    json job = llama();
    job["spec"]["managedBy"] = manager;
    World world = two_pools_and_a_job(job);
    world.settle();
    EXPECT_EQ(world.writes, 0) << manager;
    EXPECT_TRUE(world.told.empty()) << manager;
  }
}

TEST(Delegation, ToAnotherControllerMeansNoWritesEvenWhenTheJobIsDeleted) {
  json job = llama();
  job["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  job["metadata"]["finalizers"] = json::array({api::kFinalizer});
  World world = two_pools_and_a_job(job);
  world.remove(resources::kTrainingJobs, world.job_key);
  world.settle();
  EXPECT_EQ(world.writes, 0);
}

TEST(Delegation, ToOurselvesByNameIsNone) {
  json job = llama();
  job["spec"]["managedBy"] = "loadline.dev/operator";
  World world = two_pools_and_a_job(job);
  world.settle();
  EXPECT_EQ(world.phase(), "Starting");
}

TEST(OptOut, OfANamespaceMeansNoWritesWhateverTheLabelsValue) {
  for (const char* value : {"", "true", "false"}) {
    World world = two_pools_and_a_job();
    world.label_namespace(api::label::kIgnore, value);
    world.settle();
    EXPECT_EQ(world.writes, 0) << value;
    EXPECT_TRUE(world.told.empty()) << value;
  }
}

TEST(OptOut, LeavesARunningGangAloneAndIsTakenBackByRemovingTheLabel) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.label_namespace(api::label::kIgnore, "");
  world.reclaim_node("spot-0");
  world.pass(seconds(600));
  const int before = world.writes;
  world.settle();
  EXPECT_EQ(world.writes, before);
  world.label_namespace(api::label::kIgnore, nullptr);
  world.settle();
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Preempted");
}

TEST(OptOut, PromisesNoGpusToJobsThatNobodyFollows) {
  World world = two_pools_and_a_job();
  world.settle();
  ASSERT_EQ(cluster_facts(world, world.now)->ledger.promises.size(), 1U);
  world.label_namespace(api::label::kIgnore, "");
  EXPECT_TRUE(cluster_facts(world, world.now)->ledger.promises.empty());
}

TEST(OptOut, IsPresumedOfANamespaceThatIsNotKnownYet) {
  World world = two_pools_and_a_job();
  world.remove(core::kNamespaces, {"", "team"});
  world.settle();
  EXPECT_EQ(world.writes, 0);
}

}  // namespace
}  // namespace loadline::controller
