// Admission as kubectl meets it: the real webhook behind a real API server.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cluster/cluster.h"

namespace loadline::testing {
namespace {

using nlohmann::json;
using std::chrono_literals::operator""s;

std::string job(const std::string& name, const std::string& preset, int gpus) {
  return R"(
apiVersion: loadline.dev/v1alpha1
kind: TrainingJob
metadata: {name: )" +
         name + R"(, namespace: default}
spec:
  model: {preset: )" +
         preset + R"(}
  training: {framework: huggingface, sequenceLength: 4096, microBatchSize: 1, globalBatchSize: 64, tokens: 1e9}
  gpus: {count: )" +
         std::to_string(gpus) + R"(}
  checkpoint: {}
  suspend: true
  template:
    spec:
      containers:
        - {name: trainer, image: registry.example/train:1}
)";
}

bool says(const CommandResult& result, const std::string& words) {
  return (result.output + result.error).find(words) != std::string::npos;
}

class Admission : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster = std::make_unique<Cluster>(Cluster::start());
    cluster->install();
  }
  static void TearDownTestSuite() { cluster.reset(); }

  static json stored(const std::string& name) { return cluster->get({"trainingjob", name}); }

  static std::unique_ptr<Cluster> cluster;
};
std::unique_ptr<Cluster> Admission::cluster;

TEST_F(Admission, ApplyPrintsTheNeedAndThePool) {
  const CommandResult result = cluster->apply(job("fits", "llama-3.1-8b", 8));
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_TRUE(says(result, "Warning: needs ")) << result.error;
  EXPECT_TRUE(says(result, "GiB per GPU")) << result.error;
}

TEST_F(Admission, AJobThatCannotFitIsRefusedWithTheSumAndNothingIsStored) {
  const CommandResult result = cluster->apply(job("big", "llama-3.1-405b", 8));
  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(says(result, "spec.gpus")) << result.error;
  EXPECT_TRUE(says(result, "GiB per GPU at best")) << result.error;
  EXPECT_TRUE(stored("big").is_null());
}

TEST_F(Admission, DryRunGivesTheSameVerdictAndStoresNothing) {
  const CommandResult fits = cluster->apply(job("dry", "llama-3.1-8b", 8), {"--dry-run=server"});
  EXPECT_TRUE(fits.ok()) << fits.error;
  EXPECT_TRUE(says(fits, "Warning: needs ")) << fits.error;
  const CommandResult big = cluster->apply(job("dry-big", "llama-3.1-405b", 8), {"--dry-run=server"});
  EXPECT_FALSE(big.ok());
  EXPECT_TRUE(stored("dry").is_null());
}

TEST_F(Admission, EveryCauseIsSaidAtOnce) {
  std::string yaml = job("wrong", "llama-3.1-8b", 8);
  yaml.replace(yaml.find("suspend: true"), 13, "launcher: mpi\n  queueName: night");
  const CommandResult result = cluster->apply(yaml);
  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(says(result, "not supported yet: spec.launcher")) << result.error;
  EXPECT_TRUE(says(result, "not supported yet: spec.queueName")) << result.error;
}

TEST_F(Admission, APriceWithACommaIsRefused) {
  const CommandResult result = cluster->apply(R"(
apiVersion: loadline.dev/v1alpha1
kind: GPUPool
metadata: {name: comma}
spec:
  nodeSelector: {pool: comma}
  price: {perGPUHour: "1,20"}
)");
  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(says(result, "spec.price.perGPUHour")) << result.error;
}

TEST_F(Admission, TheCertificateIsTrustedThroughTheRegistrationsAlone) {
  for (const char* kind : {"mutatingwebhookconfiguration", "validatingwebhookconfiguration"}) {
    const json registration = cluster->get({kind, "loadline"});
    ASSERT_FALSE(registration.is_null());
    for (const json& webhook : registration["webhooks"]) EXPECT_TRUE(webhook["clientConfig"].contains("caBundle"));
  }
}

TEST_F(Admission, WhenTheSecretIsLostWritesGoOnAndANewOneIsMade) {
  ASSERT_TRUE(cluster->kubectl({"-n", "loadline-system", "delete", "secret", "loadline-webhook-tls"}).ok());
  cluster->stop_webhook();
  cluster->start_webhook();
  EXPECT_TRUE(cluster->wait_for(
      30s, [] { return cluster->apply(job("after", "llama-3.1-8b", 8), {"--dry-run=server"}).ok(); }));
  EXPECT_FALSE(cluster->get({"-n", "loadline-system", "secret", "loadline-webhook-tls"}).is_null());
}

}  // namespace
}  // namespace loadline::testing
