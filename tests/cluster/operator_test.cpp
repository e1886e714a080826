// The operator against a real control plane: gangs, preemption, and its own death at any time.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/cluster/cluster.h"

namespace loadline::testing {
namespace {

using nlohmann::json;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

/// Full fine-tuning of an 8B model on eight GPUs whose pods run for `seconds`.
std::string job_yaml(const std::string& name, const std::string& annotations, const std::string& more = "") {
  return R"(
apiVersion: loadline.dev/v1alpha1
kind: TrainingJob
metadata: {name: )" +
         name + R"(}
spec:
  model: {preset: llama-3.1-8b}
  training: {framework: torchtitan, method: full, sequenceLength: 4096, globalBatchSize: 64,
             activationCheckpointing: full, loss: chunked, tokens: 1.0e9}
  gpus: {count: 8}
  checkpoint:
    volume: {storageClassName: fast-rwx, accessModes: [ReadWriteMany]}
  restart: {backoff: 1s}
)" + more +
         R"(
  template:
    metadata:
      annotations: {)" +
         annotations + R"(}
    spec:
      containers: [{name: trainer, image: registry.example.com/train, command: [torchrun, train.py]}]
)";
}

class OperatorOnAControlPlane : public ::testing::Test {
 protected:
  void SetUp() override { cluster.install(); }

  json job(const std::string& name) { return cluster.get({"trainingjob", name}); }
  std::string pool(const std::string& name) { return job(name)["status"]["placement"].value("pool", ""); }
  bool running(const std::string& name) { return cluster.wait_for_condition("trainingjob/" + name, "Running", 60s); }
  bool succeeded(const std::string& name) {
    return cluster.wait_for_condition("trainingjob/" + name, "Succeeded", 120s);
  }
  std::string node_of(const std::string& pod_selector) {
    const json pods = cluster.get({"pods", "-l", pod_selector});
    return pods["items"].empty() ? "" : pods["items"][0]["spec"].value("nodeName", "");
  }

  Cluster cluster = Cluster::start({.fleet = "small"});
};

TEST_F(OperatorOnAControlPlane, RunsAJobToItsEndAndThenWritesNothing) {
  const CommandResult applied = cluster.apply(job_yaml("plain", R"(loadline.dev/fake-duration-seconds: "3")"));
  ASSERT_TRUE(applied.ok()) << applied.error;
  ASSERT_TRUE(succeeded("plain")) << job("plain")["status"].dump(1);
  EXPECT_EQ(job("plain")["status"]["attempt"], 1);
  const json before = job("plain");
  std::this_thread::sleep_for(5s);
  EXPECT_EQ(job("plain")["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
}

TEST_F(OperatorOnAControlPlane, MovesAReclaimedGangToAnotherPoolWithTheSameClaim) {
  ASSERT_TRUE(cluster.apply(job_yaml("moved", R"(loadline.dev/fake-duration-seconds: "forever|3")")).ok());
  ASSERT_TRUE(running("moved")) << job("moved")["status"].dump(1);
  const std::string first = node_of("loadline.dev/job-name=moved");
  const json claim = cluster.get({"pvc", "moved-checkpoint"});
  cluster.reclaim_node(first);
  ASSERT_TRUE(succeeded("moved")) << job("moved")["status"].dump(1);
  const json status = job("moved")["status"];
  EXPECT_EQ(status["attempt"], 2);
  EXPECT_NE(status["attempts"][0]["cause"], "UserFailure");
  EXPECT_EQ(cluster.get({"pvc", "moved-checkpoint"})["metadata"]["uid"], claim["metadata"]["uid"]);
}

TEST_F(OperatorOnAControlPlane, LosesNothingWhenItIsKilledAtAnyTime) {
  ASSERT_TRUE(cluster.apply(job_yaml("killed", R"(loadline.dev/fake-duration-seconds: "forever|2")")).ok());
  for (int i = 0; i < 6; ++i) {
    cluster.kill_operator();
    if (i == 3) {
      const std::string node = node_of("loadline.dev/job-name=killed");
      if (!node.empty()) cluster.reclaim_node(node);
    }
    cluster.start_operator();
    std::this_thread::sleep_for(i * 150ms);
  }
  ASSERT_TRUE(cluster.wait_for(180s, [&] {
    const json status = job("killed")["status"];
    return status.value("phase", "") == "Succeeded" || status.value("attempt", 0) == 1;
  }));
  const json jobs = cluster.get({"jobs"});
  std::set<std::string> names;
  for (const json& item : jobs["items"]) EXPECT_TRUE(names.insert(item["metadata"]["name"]).second);
  EXPECT_EQ(cluster.get({"pvc"})["items"].size(), 1U) << "one claim, however often it was killed";
}

TEST_F(OperatorOnAControlPlane, SuspendsAndResumes) {
  ASSERT_TRUE(cluster.apply(job_yaml("paused", R"(loadline.dev/fake-duration-seconds: "forever|3")")).ok());
  ASSERT_TRUE(running("paused")) << job("paused")["status"].dump(1);
  ASSERT_TRUE(cluster.kubectl({"patch", "tj", "paused", "--type=merge", "-p", R"({"spec":{"suspend":true}})"}).ok());
  ASSERT_TRUE(cluster.wait_for_condition("trainingjob/paused", "Suspended", 30s));
  EXPECT_TRUE(cluster.wait_for(60s, [&] {
    return cluster.get({"pods", "-l", "loadline.dev/job-name=paused"})["items"].empty();
  }));
  ASSERT_TRUE(cluster.kubectl({"patch", "tj", "paused", "--type=merge", "-p", R"({"spec":{"suspend":false}})"}).ok());
  ASSERT_TRUE(succeeded("paused")) << job("paused")["status"].dump(1);
}

TEST_F(OperatorOnAControlPlane, RetriesAFailingTrainerAndGivesUpAtTheLimit) {
  ASSERT_TRUE(cluster
                  .apply(job_yaml("failing",
                                  R"(loadline.dev/fake-duration-seconds: "1", loadline.dev/fake-exit-code: "1",
                                     loadline.dev/fake-exit-message: "ValueError: bad sample 17")"))
                  .ok());
  ASSERT_TRUE(cluster.wait_for_condition("trainingjob/failing", "Failed", 120s)) << job("failing")["status"].dump(1);
  const json status = job("failing")["status"];
  EXPECT_EQ(status["endings"]["userFailures"], 3);
  EXPECT_NE(status["attempts"].back()["detail"].get<std::string>().find("bad sample 17"), std::string::npos);
}

}  // namespace
}  // namespace loadline::testing
