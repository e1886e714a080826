// How jobs end, give way and wait, on a real control plane.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cluster/operator_fixture.h"

namespace loadline::testing {
namespace {

using nlohmann::json;
using std::chrono_literals::operator""s;

/// A trainer that runs out of GPU memory; by attempt: "1|0" does so in the first only.
json running_out(const std::string& exit_codes) {
  json annotations = lasting("1");
  annotations["loadline.dev/fake-exit-code"] = exit_codes;
  annotations["loadline.dev/fake-exit-message"] =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
  return annotations;
}

TEST_F(OperatorOnAControlPlane, LeavesOfADeletedJobNothingButTheClaimThatIsToStay) {
  json taken = job_named("taken", lasting("forever"));
  taken["spec"]["checkpoint"]["volume"]["retain"] = "Delete";
  ASSERT_TRUE(cluster().apply(job_named("kept", lasting("forever")).dump()).ok());
  ASSERT_TRUE(cluster().apply(taken.dump()).ok());
  for (const char* name : {"kept", "taken"}) ASSERT_TRUE(running(name)) << status(name).dump(1);

  ASSERT_TRUE(cluster().kubectl({"delete", "trainingjobs", "kept", "taken", "--timeout=60s"}).ok());
  // The garbage collector looks for new kinds every 30 s; until then it does not know whose children these are.
  for (const char* name : {"kept", "taken"}) {
    EXPECT_TRUE(cluster().wait_for(120s, [&] { return children(name).empty(); })) << children(name).dump(1);
  }
  EXPECT_TRUE(cluster().wait_for(30s, [] { return cluster().get({"pvc", "taken-checkpoint"}).is_null(); }));
  EXPECT_FALSE(cluster().get({"pvc", "kept-checkpoint"}).is_null());
}

TEST_F(OperatorOnAControlPlane, NeverRepeatsWhatRanOutOfMemory) {
  ASSERT_TRUE(cluster().apply(job_named("tight", running_out("1|0")).dump()).ok());
  ASSERT_TRUE(succeeded("tight")) << status("tight").dump(1);
  const json tight = status("tight");
  ASSERT_EQ(tight["attempts"].size(), 2U);
  const json& first = tight["attempts"][0];
  const json& second = tight["attempts"][1];
  EXPECT_EQ(first["cause"], "OutOfMemory");
  EXPECT_FALSE(first["pool"] == second["pool"] && first["layout"] == second["layout"]) << tight["attempts"].dump(1);
  EXPECT_EQ(tight["endings"]["outOfMemory"], 1);
  EXPECT_EQ(tight["endings"]["userFailures"], 0);
}

TEST_F(OperatorOnAControlPlane, FailsWithAdviceWhenNoOtherLayoutIsLeft) {
  json only = job_named("only", running_out("1"));
  only["spec"]["placement"] = {{"pools", json::array({"a100"})}};
  only["spec"]["training"]["microBatchSize"] = 1;
  only["spec"]["parallelism"] = {{"tensor", 1}, {"pipeline", 1}, {"sharding", "zero3"}, {"offload", "none"}};
  ASSERT_TRUE(cluster().apply(only.dump()).ok());
  ASSERT_TRUE(cluster().wait_for_condition("trainingjob/only", "Failed", 30s)) << status("only").dump(1);
  EXPECT_EQ(condition("only", "Failed")["reason"], "OutOfMemory");
  EXPECT_NE(condition("only", "Failed")["message"].get<std::string>().find("No other layout is left"),
            std::string::npos)
      << condition("only", "Failed");
  EXPECT_EQ(status("only")["attempts"].size(), 1U) << "the same is never tried again";
}

TEST_F(OperatorOnAControlPlane, LetsTheSecondOfTwoJobsWaitForThePool) {
  const auto whole_pool = [](const std::string& name) {
    json spec = job_named(name, lasting("6"));
    spec["spec"]["gpus"]["count"] = 16;
    spec["spec"]["placement"] = {{"pools", json::array({"a100"})}};
    return spec;
  };
  const json both = {
      {"apiVersion", "v1"}, {"kind", "List"}, {"items", json::array({whole_pool("red"), whole_pool("blue")})}};
  ASSERT_TRUE(cluster().apply(both.dump()).ok());
  ASSERT_TRUE(cluster().wait_for(
      20s,
      [] { return status("red").value("phase", "") == "Waiting" || status("blue").value("phase", "") == "Waiting"; }))
      << status("red").dump(1) << status("blue").dump(1);
  const bool red_waits = phase("red") == "Waiting";
  const std::string first = red_waits ? "blue" : "red", second = red_waits ? "red" : "blue";
  const json placed = condition(second, "Placed");
  EXPECT_EQ(placed["reason"], "NoFreeGPUs") << placed;
  EXPECT_FALSE(status(second).contains("attempt"));
  ASSERT_TRUE(running(first)) << status(first).dump(1);
  ASSERT_TRUE(succeeded(first)) << status(first).dump(1);
  ASSERT_TRUE(succeeded(second)) << status(second).dump(1);
  EXPECT_GE(status(second)["startTime"], status(first)["completionTime"]);
}

}  // namespace
}  // namespace loadline::testing
