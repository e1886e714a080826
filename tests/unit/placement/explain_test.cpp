// What users read, kept word for word in tests/data/golden/placement. To accept new words run
// the test with LOADLINE_UPDATE_GOLDEN=1 and read the difference.
#include "placement/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/unit/placement/fixtures.h"

namespace loadline::placement {
namespace {

using namespace testing_support;

std::string rendered(World& world) {
  const Request request = world.request();
  const Plan plan = placement::plan(request, world.inventory(), world.policies, world.ledger, kNow);
  std::ostringstream out;
  const auto section = [&](const char* title, const std::vector<std::string>& lines) {
    out << title << "\n";
    for (const std::string& line : lines) out << "  " << line << "\n";
  };
  out << outcome_reason(plan) << ": " << outcome_message(request, plan) << "\n";
  section("Warnings", apply_warnings(request, plan));
  std::vector<std::string> errors;
  for (const FieldError& error : refusals(request, plan)) errors.push_back(to_string(error));
  section("Refusals", errors);
  section("Placement", placement_explanation(request, plan));
  section("Policy", policy_status(plan.stated).rules);
  section("Checkpoint", checkpoint_status(request, plan).explanation);
  section("Options", [&] {
    std::vector<std::string> lines;
    for (const api::PlacementOption& option : placement_status(request, plan).options) {
      lines.push_back(option.pool + " " + std::string(api::name_of(option.verdict)) + " " + option.reason + ": " +
                      option.detail);
    }
    return lines;
  }());
  return out.str();
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(LOADLINE_SOURCE_DIR) + "/tests/data/golden/placement/" + name + ".txt";
  if (std::getenv("LOADLINE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

World fleet() {
  World world;
  api::GPUPool spot = pool("gke-a100-80g-spot", {.capacity = api::CapacityType::Spot, .price = "1.60"});
  spot.spec.storage = api::StorageSpec{};
  spot.spec.storage->classes = {"fast-rwx"};
  spot.spec.storage->writeMiBps = 2600;
  spot.spec.interruptionsPerNodeHour = 0.2;
  api::GPUPool l4 = pool("aks-l4-spot", {.product = "NVIDIA-L4", .capacity = api::CapacityType::Spot, .price = "0.30"});
  l4.spec.gpu->memoryMiBPerGPU = 23034;
  world.pools = {
      spot, pool("gke-a100-80g", {.price = "3.67"}),
      pool("gke-h100", {.product = "NVIDIA-H100-80GB-HBM3", .price = "9.80"}), l4,
      pool("eks-p5-spot", {.product = "NVIDIA-H100-80GB-HBM3", .capacity = api::CapacityType::Spot, .price = "4.10"})};
  world.nodes = {gke_node("spot-1", "gke-a100-80g-spot"), gke_node("od-1", "gke-a100-80g"),
                 gke_node("od-2", "gke-a100-80g")};
  world.pods = {pod_on("od-1", 8)};
  api::PlacementPolicy policy;
  policy.metadata.name = "team-nlp";
  policy.metadata.generation = 3;
  policy.spec.allow = api::PoolRules{};
  policy.spec.allow->pools = {"gke-a100-80g-spot", "gke-a100-80g", "gke-h100", "aks-l4-spot"};
  policy.spec.spot = api::SpotSpec{};
  policy.spec.spot->maxPreemptions = 3;
  world.policies = {policy};
  world.job.metadata.name = "llama-sft";
  return world;
}

TEST(Golden, FirstPlacementOnSpot) {
  World world = fleet();
  expect_golden("first-placement", rendered(world));
}

TEST(Golden, MovedOffSpotAfterThreeInterruptions) {
  World world = fleet();
  world.history["gke-a100-80g-spot"] = {3, 4.1};
  world.current_pool = "gke-a100-80g-spot";
  expect_golden("moved-off-spot", rendered(world));
}

TEST(Golden, RefusedFor70BOnL4AndA100) {
  World world = fleet();
  world.job.metadata.name = "big";
  world.job.spec.model.preset = "llama-3.1-70b";
  expect_golden("refused-70b", rendered(world));
}

TEST(Golden, WaitsForBusyNodesInThePinnedZone) {
  World world = fleet();
  for (api::GPUPool& pool : world.pools) pool.spec.scaling.reset();
  world.job.spec.gpus->count = 16;
  world.pinned_zone = "zone-a";
  expect_golden("waits", rendered(world));
}

TEST(Golden, WithoutALengthOrACheckpoint) {
  World world = fleet();
  world.job.spec.training.tokens.reset();
  world.job.spec.checkpoint.reset();
  expect_golden("no-length", rendered(world));
}

TEST(Warnings, AreShort) {
  World world = fleet();
  const Request request = world.request();
  for (const std::string& line : apply_warnings(request, world.planned())) EXPECT_LE(line.size(), 256U);
}

TEST(Status, IsBounded) {
  World world = fleet();
  for (int i = 0; i < 40; ++i) world.pools.push_back(pool("pool-" + std::to_string(i)));
  const Request request = world.request();
  const Plan plan = placement::plan(request, world.inventory(), world.policies, world.ledger, kNow);
  const api::PlacementStatus status = placement_status(request, plan);
  EXPECT_EQ(status.options.size(), 10U);
  EXPECT_LE(status.explanation.size(), 24U);
  EXPECT_EQ(status.pool, plan.ranked[0].pool->name);
  EXPECT_EQ(status.layout->gpus,
            status.layout->tensor * status.layout->pipeline * status.layout->context * status.layout->data);
}

TEST(Ledger, IsReadBackFromTheStatusThatAPlanWrote) {
  World world = fleet();
  const Request request = world.request();
  const Plan plan = placement::plan(request, world.inventory(), world.policies, world.ledger, kNow);
  api::TrainingJob job = world.job;
  job.status.placement = placement_status(request, plan);
  api::AttemptStatus attempt;
  attempt.number = 2;
  attempt.pool = *job.status.placement->pool;
  job.status.attempts = {attempt};
  const Ledger ledger = ledger_of({job});
  ASSERT_EQ(ledger.promises.size(), 1U);
  const Promise expected = promise_of(request, *plan.chosen(), 2);
  EXPECT_EQ(ledger.promises[0].pool, expected.pool);
  EXPECT_EQ(ledger.promises[0].gpus(), expected.gpus());
  EXPECT_NEAR(*ledger.promises[0].cost_per_hour, *expected.cost_per_hour, 0.01);
  job.status.attempts[0].endTime = "2026-11-30T11:00:00Z";
  EXPECT_TRUE(ledger_of({job}).promises.empty());
}

}  // namespace
}  // namespace loadline::placement
