// The operator against a real control plane: gangs, preemption, and its own death at any time.
#include <gtest/gtest.h>

#include <memory>
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

/// One cluster for all tests; each starts with the whole fleet up and no job.
class OperatorOnAControlPlane : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<Cluster>(Cluster::start({.fleet = "small"}));
    cluster_->install();
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override { cluster().add_fleet("small"); }
  void TearDown() override {
    const CommandResult deleted = cluster().kubectl({"delete", "trainingjobs", "--all", "--timeout=60s"});
    EXPECT_TRUE(deleted.ok()) << deleted.error;
    EXPECT_TRUE(cluster().kubectl({"delete", "pvc", "--all", "--wait=false"}).ok());
    EXPECT_TRUE(cluster().wait_for(90s, [] { return cluster().get({"pods,jobs,pvc"})["items"].empty(); }));
    // A released static volume is never bound again; add_fleet makes them anew.
    EXPECT_TRUE(cluster().kubectl({"delete", "pv", "--all", "--timeout=30s"}).ok());
  }

  static Cluster& cluster() { return *cluster_; }
  static json job(const std::string& name) { return cluster().get({"trainingjob", name}); }
  static bool running(const std::string& name) {
    return cluster().wait_for_condition("trainingjob/" + name, "Running", 60s);
  }
  static bool succeeded(const std::string& name) {
    return cluster().wait_for_condition("trainingjob/" + name, "Succeeded", 150s);
  }
  static std::string node_of(const std::string& name) {
    const json pods = cluster().get({"pods", "-l", "loadline.dev/job-name=" + name});
    return pods["items"].empty() ? "" : pods["items"][0]["spec"].value("nodeName", "");
  }

  static std::unique_ptr<Cluster> cluster_;
};

std::unique_ptr<Cluster> OperatorOnAControlPlane::cluster_;

TEST_F(OperatorOnAControlPlane, RunsAJobToItsEndAndThenWritesNothing) {
  const CommandResult applied = cluster().apply(job_yaml("plain", R"(loadline.dev/fake-duration-seconds: "3")"));
  ASSERT_TRUE(applied.ok()) << applied.error;
  ASSERT_TRUE(succeeded("plain")) << job("plain")["status"].dump(1);
  EXPECT_EQ(job("plain")["status"]["attempt"], 1);
  const json before = job("plain");
  std::this_thread::sleep_for(5s);
  EXPECT_EQ(job("plain")["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
}

TEST_F(OperatorOnAControlPlane, MovesAReclaimedGangToAnotherPoolWithTheSameClaim) {
  ASSERT_TRUE(cluster().apply(job_yaml("moved", R"(loadline.dev/fake-duration-seconds: "forever|3")")).ok());
  ASSERT_TRUE(running("moved")) << job("moved")["status"].dump(1);
  const json first = job("moved")["status"]["attempts"][0];
  ASSERT_EQ(first["pool"], "a100-spot") << "the cheapest";
  const json claim = cluster().get({"pvc", "moved-checkpoint"});
  const std::string reclaimed = node_of("moved");
  // The idle node first, so that nothing of the pool is left when the gang loses its own.
  cluster().reclaim_node(reclaimed == "a100-spot-0" ? "a100-spot-1" : "a100-spot-0");
  cluster().reclaim_node(reclaimed);
  ASSERT_TRUE(succeeded("moved")) << job("moved")["status"].dump(1);

  const json status = job("moved")["status"];
  EXPECT_EQ(status["attempt"], 2);
  EXPECT_EQ(status["attempts"][0]["cause"], "Preempted");
  EXPECT_NE(status["attempts"][0]["detail"].get<std::string>().find(reclaimed), std::string::npos)
      << status["attempts"][0]["detail"];
  EXPECT_NE(status["attempts"][1]["pool"], "a100-spot");
  EXPECT_EQ(status["endings"]["preemptions"], 1);
  EXPECT_EQ(cluster().get({"pvc", "moved-checkpoint"})["metadata"]["uid"], claim["metadata"]["uid"]);
}

TEST_F(OperatorOnAControlPlane, LosesNothingWhenItIsKilledAtAnyTime) {
  const auto kill_three_times = [] {
    for (int i = 0; i < 3; ++i) {
      cluster().kill_operator();
      cluster().start_operator();
      std::this_thread::sleep_for(i * 200ms);
    }
  };
  ASSERT_TRUE(cluster().apply(job_yaml("killed", R"(loadline.dev/fake-duration-seconds: "forever|2")")).ok());
  kill_three_times();
  ASSERT_TRUE(running("killed")) << job("killed")["status"].dump(1);
  cluster().kill_operator();
  cluster().reclaim_node(node_of("killed"));
  cluster().start_operator();
  kill_three_times();
  ASSERT_TRUE(succeeded("killed")) << job("killed")["status"].dump(1);

  const json status = job("killed")["status"];
  EXPECT_EQ(status["attempt"], 2);
  EXPECT_EQ(status["attempts"].size(), 2U);
  EXPECT_EQ(status["endings"]["preemptions"], 1) << "counted once";
  EXPECT_EQ(status["endings"]["userFailures"], 0);
  std::set<std::string> jobs;
  for (const json& item : cluster().get({"jobs"})["items"]) jobs.insert(item["metadata"]["name"].get<std::string>());
  for (const std::string& name : jobs) EXPECT_TRUE(name == "killed-a1" || name == "killed-a2") << name;
  EXPECT_EQ(cluster().get({"pvc"})["items"].size(), 1U) << "one claim, however often it was killed";
}

TEST_F(OperatorOnAControlPlane, SuspendsAndResumes) {
  ASSERT_TRUE(cluster().apply(job_yaml("paused", R"(loadline.dev/fake-duration-seconds: "forever|3")")).ok());
  ASSERT_TRUE(running("paused")) << job("paused")["status"].dump(1);
  ASSERT_TRUE(cluster().kubectl({"patch", "tj", "paused", "--type=merge", "-p", R"({"spec":{"suspend":true}})"}).ok());
  ASSERT_TRUE(cluster().wait_for_condition("trainingjob/paused", "Suspended", 30s));
  EXPECT_TRUE(cluster().wait_for(60s, [&] {
    return cluster().get({"pods", "-l", "loadline.dev/job-name=paused"})["items"].empty();
  }));
  ASSERT_TRUE(cluster().kubectl({"patch", "tj", "paused", "--type=merge", "-p", R"({"spec":{"suspend":false}})"}).ok());
  ASSERT_TRUE(succeeded("paused")) << job("paused")["status"].dump(1);
}

TEST_F(OperatorOnAControlPlane, RetriesAFailingTrainerAndGivesUpAtTheLimit) {
  ASSERT_TRUE(cluster()
                  .apply(job_yaml("failing",
                                  R"(loadline.dev/fake-duration-seconds: "1", loadline.dev/fake-exit-code: "1",
                                     loadline.dev/fake-exit-message: "ValueError: bad sample 17")"))
                  .ok());
  ASSERT_TRUE(cluster().wait_for_condition("trainingjob/failing", "Failed", 120s)) << job("failing")["status"].dump(1);
  const json status = job("failing")["status"];
  EXPECT_EQ(status["endings"]["userFailures"], 3);
  EXPECT_NE(status["attempts"].back()["detail"].get<std::string>().find("bad sample 17"), std::string::npos);
}

}  // namespace
}  // namespace loadline::testing
