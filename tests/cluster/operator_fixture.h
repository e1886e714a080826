// A cluster with Loadline installed, for all tests of the operator, and the job they apply.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cluster/cluster.h"

namespace loadline::testing {

/// Full fine-tuning of an 8B model on eight GPUs. What its pods do is told by annotations (tests/cluster/README.md).
inline nlohmann::json job_named(const std::string& name, const nlohmann::json& annotations) {
  const nlohmann::json trainer = {{"name", "trainer"},
                                  {"image", "registry.example.com/train"},
                                  {"command", nlohmann::json::array({"torchrun", "train.py"})}};
  return {
      {"apiVersion", "loadline.dev/v1alpha1"},
      {"kind", "TrainingJob"},
      {"metadata", {{"name", name}}},
      {"spec",
       {{"model", {{"preset", "llama-3.1-8b"}}},
        {"training",
         {{"framework", "torchtitan"},
          {"method", "full"},
          {"sequenceLength", 4096},
          {"globalBatchSize", 64},
          {"activationCheckpointing", "full"},
          {"loss", "chunked"},
          {"tokens", 1.0e9}}},
        {"gpus", {{"count", 8}}},
        {"checkpoint",
         {{"volume", {{"storageClassName", "fast-rwx"}, {"accessModes", nlohmann::json::array({"ReadWriteMany"})}}}}},
        {"restart", {{"backoff", "1s"}}},
        {"template",
         {{"metadata", {{"annotations", annotations}}},
          {"spec", {{"containers", nlohmann::json::array({trainer})}}}}}}}};
}

/// Pods that run so many seconds: "3", "forever", or by attempt: "forever|3".
inline nlohmann::json lasting(const std::string& seconds) { return {{"loadline.dev/fake-duration-seconds", seconds}}; }

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
    EXPECT_TRUE(
        cluster().wait_for(std::chrono::seconds(90), [] { return cluster().get({"pods,jobs,pvc"})["items"].empty(); }));
    // A released static volume is never bound again; add_fleet makes them anew.
    EXPECT_TRUE(cluster().kubectl({"delete", "pv", "--all", "--timeout=30s"}).ok());
  }

  static Cluster& cluster() { return *cluster_; }
  static nlohmann::json job(const std::string& name) { return cluster().get({"trainingjob", name}); }
  static bool running(const std::string& name) {
    return cluster().wait_for_condition("trainingjob/" + name, "Running", std::chrono::seconds(60));
  }
  static bool succeeded(const std::string& name) {
    return cluster().wait_for_condition("trainingjob/" + name, "Succeeded", std::chrono::seconds(150));
  }
  static std::string node_of(const std::string& name) {
    const nlohmann::json pods = cluster().get({"pods", "-l", "loadline.dev/job-name=" + name});
    return pods["items"].empty() ? "" : pods["items"][0]["spec"].value("nodeName", "");
  }

  /// What is there of one job.
  static nlohmann::json children(const std::string& name) {
    return cluster().get({"pods,jobs,services,configmaps", "-l", "loadline.dev/job-name=" + name})["items"];
  }
  static nlohmann::json status(const std::string& name) {
    const nlohmann::json found = job(name);
    return found.is_object() ? found.value("status", nlohmann::json::object()) : nlohmann::json::object();
  }
  static std::string phase(const std::string& name) { return status(name).value("phase", ""); }
  static nlohmann::json condition(const std::string& name, const std::string& type) {
    const nlohmann::json conditions = status(name).value("conditions", nlohmann::json::array());
    for (const nlohmann::json& condition : conditions) {
      if (condition["type"] == type) return condition;
    }
    return {{"reason", ""}, {"message", ""}};
  }

  inline static std::unique_ptr<Cluster> cluster_;
};

}  // namespace loadline::testing
