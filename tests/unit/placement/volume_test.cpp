// Which pools and sizes a checkpoint volume leaves to a gang.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/explain.h"
#include "placement/plan.h"
#include "tests/unit/placement/fixtures.h"

namespace loadline::placement {
namespace {

using namespace testing_support;
using testing::ElementsAre;

TEST(Volume, OfOneNodeKeepsAJobOfAnySizeOnOneNode) {
  World world = one_pool();
  world.job.spec.gpus.reset();
  world.policies = {policy()};
  world.policies[0].spec.objective.emplace().type = api::PlacementObjective::Time;
  EXPECT_EQ(world.planned().best()->nodes(), 2);
  world.claim = SeenClaim{"sft-checkpoint", {"ReadWriteOnce"}, ""};
  EXPECT_EQ(world.planned().best()->nodes(), 1);
}

TEST(Volume, ThatIsSharedAmongOtherThingsServesSeveralNodes) {
  World world = one_pool();
  world.job.spec.gpus->count = 16;
  world.claim = SeenClaim{"sft-checkpoint", {"ReadWriteOnce", "ReadWriteMany"}, ""};
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
}

TEST(Volume, GoesByTheClaimThereIsAndNotByWhatTheSpecAsksForSince) {
  World world = one_pool();
  world.job.spec.gpus->count = 16;
  world.job.spec.checkpoint->volume.emplace().accessModes = {"ReadWriteMany"};
  world.claim = SeenClaim{"sft-checkpoint", {"ReadWriteOnce"}, ""};
  EXPECT_EQ(on(world.planned(), "a").reason, Reason::VolumeNotShared);
}

TEST(Volume, ThatIsNotMadeYetIsMadeForAsManyNodesAsTheGangHas) {
  World world = one_pool();
  EXPECT_THAT(world.planned().checkpoint.access_modes, ElementsAre("ReadWriteOnce"));
  world.job.spec.gpus->count = 16;
  EXPECT_THAT(world.planned().checkpoint.access_modes, ElementsAre("ReadWriteMany"));
}

TEST(Volume, OfAClassIsRefusedOnlyByPoolsThatListOthers) {
  World world = one_pool();
  world.claim = SeenClaim{"sft-checkpoint", {"ReadWriteMany"}, "nfs"};
  EXPECT_EQ(world.planned().outcome, Outcome::Placed) << "the pool lists none";
  world.pools[0].spec.storage.emplace().classes = {"fast-rwx", "nfs"};
  EXPECT_EQ(world.planned().outcome, Outcome::Placed);
  world.claim->storage_class = "";
  EXPECT_EQ(world.planned().outcome, Outcome::Placed) << "a volume without a class may be mounted anywhere";
}

TEST(Volume, ThatCannotServeIsRefusedUnderTheFieldThatAskedForIt) {
  World world = one_pool();
  world.job.spec.gpus->count = 16;
  world.job.spec.checkpoint->volume.emplace().accessModes = {"ReadWriteOnce"};
  const auto errors = refusals(world.request(), world.planned());
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].field, "spec.checkpoint.volume.accessModes");
  EXPECT_EQ(errors[0].value, "ReadWriteOnce");
}

}  // namespace
}  // namespace loadline::placement
