// What the API server itself says of our three kinds, before any program of ours is asked: schema and CEL rules.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "tests/cluster/cluster.h"

namespace loadline::testing {
namespace {

using nlohmann::json;

class Crds : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<Cluster>(Cluster::start({.fleet = ""}));
    for (const char* how : {"--server-side=false", "--server-side=true"}) {
      const CommandResult applied = cluster_->kubectl(
          {"apply", how,
           "--force-conflicts=" + std::string(how == std::string("--server-side=true") ? "true" : "false"), "-f",
           LOADLINE_SOURCE_DIR "/crds"});
      ASSERT_TRUE(applied.ok()) << how << ": " << applied.error;
    }
    const CommandResult ready =
        cluster_->kubectl({"wait", "--for=condition=Established", "--timeout=30s", "crd", "--all"});
    ASSERT_TRUE(ready.ok()) << ready.error;
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  /// The server's answer to creating the object; nothing is stored.
  static CommandResult create(const json& object) {
    return cluster_->kubectl({"create", "--dry-run=server", "-f", "-"}, object.dump());
  }

  static std::unique_ptr<Cluster> cluster_;
};

std::unique_ptr<Cluster> Crds::cluster_;

json object(const std::string& kind, const json& metadata, const json& spec) {
  return {{"apiVersion", "loadline.dev/v1alpha1"}, {"kind", kind}, {"metadata", metadata}, {"spec", spec}};
}

/// The least TrainingJob, with `changes` merged into its spec.
json job(const json& changes, const json& metadata = {{"name", "x"}}) {
  json spec = {
      {"model", {{"preset", "llama-3.1-8b"}}}, {"training", {{"sequenceLength", 1}}}, {"template", json::object()}};
  spec.merge_patch(changes);
  return object("TrainingJob", metadata, spec);
}

json pool(const json& changes, const std::string& name = "p") {
  json spec = {{"nodeSelector", {{"a", "b"}}}};
  spec.merge_patch(changes);
  return object("GPUPool", {{"name", name}}, spec);
}

json policy(const json& spec) { return object("PlacementPolicy", {{"name", "p"}}, spec); }

struct Case {
  const char* says;  ///< words of the refusal; empty when the object is taken
  json given;
};

TEST_F(Crds, TakeWhatIsRightAndRefuseTheRestInWords) {
  const json no_preset = {{"preset", nullptr}};
  json only_count = no_preset;
  only_count["parameters"] = 8.03e9;
  json only_config = no_preset;
  only_config["huggingFaceConfig"] = {{"model_type", "llama"}};
  json two_models = {{"parameters", 1}};
  const auto shape = [&](const json& architecture) {
    json model = no_preset;
    model["architecture"] = architecture;
    return job({{"model", model}});
  };
  const auto training = [](const json& t) { return job({{"training", t}}); };

  const std::vector<Case> cases = {
      {"", job(json::object())},
      {"", job({{"model", only_count}})},
      {"", job({{"model", only_config}})},
      {"exactly one", job({{"model", no_preset}})},
      {"exactly one", job({{"model", two_models}})},
      {"", training({{"epochs", 1}, {"datasetTokens", 5}})},
      {"at most one of tokens, steps and epochs", training({{"tokens", 1}, {"steps", 1}})},
      {"epochs need datasetTokens", training({{"epochs", 1}})},
      {"spec.training.epochs", training({{"epochs", 0}, {"datasetTokens", 1}})},
      {"", training({{"method", "lora"}, {"lora", {{"rank", 1}}}})},
      {"only methods lora and qlora have adapters", training({{"lora", {{"rank", 1}}}})},
      {"method freeze needs the number of layers", training({{"method", "freeze"}})},
      {"only method freeze has frozen layers", training({{"frozenLayers", 1}})},
      {"spec.training.method", training({{"method", "lorra"}})},
      {"multiple of microBatchSize", training({{"microBatchSize", 3}, {"globalBatchSize", 4}})},
      {"spec.training.sequenceLength", training({{"sequenceLength", 0}})},
      {"", job({{"gpus", json::object()}})},
      {"", job({{"gpus", {{"min", 1}, {"max", 1}}}})},
      {"either count, or min and max", job({{"gpus", {{"count", 1}, {"min", 1}}}})},
      {"min must not be greater than max", job({{"gpus", {{"min", 2}, {"max", 1}}}})},
      {"spec.gpus.count", job({{"gpus", {{"count", -3}}}})},
      {"", job({{"checkpoint", {{"interval", "1h30m"}, {"volume", {{"size", "1.5Ti"}}}}}})},
      {"claimName", job({{"checkpoint", {{"volume", {{"claimName", "a"}, {"size", "auto"}}}}}})},
      {"must be auto, or a quantity", job({{"checkpoint", {{"volume", {{"size", "many"}}}}}})},
      {"must be auto, or a duration", job({{"checkpoint", {{"interval", "1d"}}}})},
      {"must be an absolute path", job({{"checkpoint", {{"path", "relative"}}}})},
      {"", job({{"progress", {{"pattern", "(?<step>[0-9]+)"}}}})},
      {"a group named step", job({{"progress", {{"pattern", "x"}}}})},
      {"", shape({{"layers", 1}, {"experts", 8}, {"topK", 2}})},
      {"heads must be a multiple of kvHeads", shape({{"heads", 8}, {"kvHeads", 3}})},
      {"topK needs experts", shape({{"topK", 3}})},
      {"need experts", shape({{"expertFfn", 3}})},
      {"spec.placement.pools", job({{"placement", {{"pools", {"a", "a"}}}}})},
      {"unknown field \"spec.nope\"", job({{"nope", 1}})},
      {"", job(json::object(), {{"name", std::string(48, 'a')}})},
      {"", job(json::object(), {{"generateName", "abc-"}})},
      {"metadata.name must be", job(json::object(), {{"name", std::string(49, 'a')}})},
      {"metadata.name must be", job(json::object(), {{"name", "a.b"}})},
      {"metadata.name must be", job(json::object(), {{"name", "1a"}})},
      {"", pool(json::object())},
      {"", pool({{"price", {{"owned", true}}}})},
      {"spec.nodeSelector", pool({{"nodeSelector", {{"a", nullptr}}}})},
      {"exactly one of perGPUHour and perNodeHour", pool({{"price", json::object()}})},
      {"exactly one of perGPUHour and perNodeHour", pool({{"price", {{"perGPUHour", "1"}, {"perNodeHour", "1"}}}})},
      {"exactly one of perGPUHour and perNodeHour", pool({{"price", {{"owned", true}, {"perGPUHour", "1"}}}})},
      {"must be greater than 0", pool({{"price", {{"perGPUHour", "0.00"}}}})},
      {"must be a decimal number", pool({{"price", {{"perGPUHour", "1,5"}}}})},
      {"minNodes must not be greater", pool({{"scaling", {{"minNodes", 3}, {"maxNodes", 1}}}})},
      {"at most 63 characters", pool(json::object(), std::string(64, 'p'))},
      {"must be Equal or Exists", pool({{"tolerations", {{{"operator", "Is"}}}}})},
      {"", policy(json::object())},
      {"", policy({{"objective", {{"type", "Balanced"}, {"valuePerHour", "1"}}}})},
      {"type Balanced needs valuePerHour", policy({{"objective", {{"type", "Balanced"}}}})},
      {"type Balanced needs valuePerHour", policy({{"objective", {{"valuePerHour", "1"}}}})},
      {"must be on-demand or reserved", policy({{"spot", {{"escalateTo", "spot"}}}})},
      {"spec.avoidNode.for", policy({{"avoidNode", {{"after", 1}}}})},
  };
  for (const Case& c : cases) {
    const CommandResult answer = create(c.given);
    if (*c.says == '\0') {
      EXPECT_TRUE(answer.ok()) << c.given.dump() << "\n" << answer.error;
    } else {
      EXPECT_FALSE(answer.ok()) << c.given.dump();
      EXPECT_NE(answer.error.find(c.says), std::string::npos) << c.given.dump() << "\n" << answer.error;
    }
  }
}

TEST_F(Crds, HoldTheSpecWhileAJobMayRunAndLetGoOfItWhileSuspended) {
  ASSERT_TRUE(
      cluster_
          ->apply(job({{"queueName", "a"}, {"suspend", false}}, {{"name", "held"}, {"namespace", "default"}}).dump())
          .ok());
  const auto patch = [](const json& spec) {
    return cluster_->kubectl({"patch", "trainingjob", "held", "--type=merge", "-p", json{{"spec", spec}}.dump()});
  };
  // Adding, changing and removing are all changes, also one after the other.
  const std::vector<json> changes = {
      {{"model", {{"preset", "llama-3.1-70b"}}}},
      {{"training", {{"sequenceLength", 2}}}},
      {{"gpus", {{"count", 8}}}},
      {{"placement", {{"pools", {"a"}}}}},
      {{"memory", {{"marginPercent", 5}}}},
      {{"checkpoint", {{"keepLast", 3}}}},
      {{"restart", {{"maxFailures", 9}}}},
      {{"parallelism", {{"tensor", 2}}}},
      {{"launcher", "none"}},
      {{"template", {{"spec", {{"containers", json::array()}}}}}},
      {{"queueName", nullptr}},
      {{"queueName", "b"}},
      // Judged by what is stored: suspending does not open the spec in the same request.
      {{"suspend", true}, {"queueName", "b"}},
  };
  for (const json& change : changes) {
    const CommandResult answer = patch(change);
    EXPECT_FALSE(answer.ok()) << change.dump();
    EXPECT_NE(answer.error.find("cannot change while the job may run; set spec.suspend to true first"),
              std::string::npos)
        << change.dump() << "\n"
        << answer.error;
  }
  const CommandResult other_controller = patch({{"managedBy", "kueue.x-k8s.io/multikueue"}});
  EXPECT_NE(other_controller.error.find("cannot change after creation"), std::string::npos) << other_controller.error;

  EXPECT_TRUE(patch({{"ttlSecondsAfterFinished", 60}}).ok());
  EXPECT_TRUE(patch({{"suspend", true}}).ok());
  EXPECT_TRUE(patch({{"gpus", {{"count", 8}}}}).ok());
  // And a queue may change and resume in one request.
  EXPECT_TRUE(patch({{"suspend", false}, {"queueName", "b"}}).ok());
}

TEST_F(Crds, ExplainEveryFieldOfEveryKind) {
  for (const char* kind : {"trainingjob", "placementpolicy", "gpupool"}) {
    const CommandResult fields = cluster_->kubectl({"explain", kind, "--recursive"});
    ASSERT_TRUE(fields.ok()) << fields.error;
    EXPECT_EQ(fields.output.find("<no description>"), std::string::npos) << kind;
  }
  const CommandResult training = cluster_->kubectl({"explain", "trainingjob.spec.training"});
  ASSERT_TRUE(training.ok()) << training.error;
  for (const char* word : {"sequenceLength", "microBatchSize", "enum:", "bf16-mixed", "-required-"}) {
    EXPECT_NE((training.output + cluster_->kubectl({"explain", "trainingjob.spec"}).output).find(word),
              std::string::npos)
        << word;
  }
}

}  // namespace
}  // namespace loadline::testing
