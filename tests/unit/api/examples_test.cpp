// Every example is a valid object that stands on its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "api/codec.h"
#include "api/names.h"
#include "tests/unit/api/schema.h"

namespace loadline::api {
namespace {

using nlohmann::json;

// The objects of a folder of examples/, with a line per file that does not parse.
template <class Kind>
std::vector<Kind> examples(const std::string& folder,
                           Result<Kind> (*parse)(const json& object, UnknownFields unknown)) {
  const auto root = std::filesystem::path(LOADLINE_SOURCE_DIR);
  std::vector<Kind> out;
  for (const auto& entry : std::filesystem::directory_iterator(root / "examples" / folder)) {
    const std::string path = std::filesystem::relative(entry.path(), root).string();
    for (const json& document : crd::read_yaml(path)) {
      EXPECT_EQ(document.value("apiVersion", ""), kApiVersion) << path;
      EXPECT_EQ(document.value("kind", ""), Kind::kKind) << path;
      auto parsed = parse(document, UnknownFields::Reject);
      EXPECT_TRUE(parsed.ok()) << path << ": " << parsed.error().message;
      if (parsed.ok()) out.push_back(std::move(parsed).value());
    }
  }
  return out;
}

TEST(Examples, OfJobsAreValidAndHaveATrainer) {
  const auto jobs = examples<TrainingJob>("jobs", parse_training_job);
  EXPECT_GE(jobs.size(), 7U);
  std::set<std::string> names;
  for (const TrainingJob& job : jobs) {
    EXPECT_TRUE(names.insert(job.metadata.name).second) << job.metadata.name << " is there twice";
    const json& containers = job.spec.podTemplate.at("spec").at("containers");
    const bool has_trainer = std::any_of(containers.begin(), containers.end(), [](const json& container) {
      return container.at("name") == kTrainerContainer;
    });
    EXPECT_TRUE(has_trainer) << job.metadata.name;
    EXPECT_TRUE(job.spec.training.sequenceLength.has_value()) << job.metadata.name;
  }
}

TEST(Examples, OfPoolsSayWhereTheirPricesComeFrom) {
  const auto pools = examples<GPUPool>("pools", parse_gpu_pool);
  EXPECT_GE(pools.size(), 6U);
  for (const GPUPool& pool : pools) {
    ASSERT_TRUE(pool.spec.price.has_value()) << pool.metadata.name;
    EXPECT_TRUE(pool.spec.price->asOf.has_value()) << pool.metadata.name;
    EXPECT_TRUE(pool.spec.price->source.value_or("").starts_with("example")) << pool.metadata.name;
  }
}

TEST(Examples, OfPoliciesNamePoolsThatAreExamplesToo) {
  const auto policies = examples<PlacementPolicy>("policies", parse_placement_policy);
  EXPECT_GE(policies.size(), 2U);
  std::set<std::string> known;
  for (const GPUPool& pool : examples<GPUPool>("pools", parse_gpu_pool)) known.insert(pool.metadata.name);
  for (const PlacementPolicy& policy : policies) {
    for (const std::string& pool : policy.spec.allow.value_or(PoolRules{}).pools) {
      EXPECT_TRUE(known.contains(pool)) << policy.metadata.name << " allows " << pool;
    }
  }
}

}  // namespace
}  // namespace loadline::api
