// An attempt that ran out of memory: the same thing is never tried again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

TEST(OutOfMemory, ChangesTheLayoutInsteadOfRepeatingIt) {
  World world = two_pools_and_a_job();
  world.settle_running();
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
    world.settle_running();
    world.fail_gang("llama-a" + std::to_string(i), 1, "torch.OutOfMemoryError: CUDA out of memory.");
    world.settle();
    world.pass(seconds(60));
  }
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")["reason"], "OutOfMemory");
}

TEST(OutOfMemory, OfTheHostFailsTheJobAndNamesTheLimit) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.fail_gang("llama-a1", 137, "", "OOMKilled");
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_THAT(world.condition("Failed")["message"].get<std::string>(), HasSubstr("now 900Gi"));
}

}  // namespace
}  // namespace loadline::controller
