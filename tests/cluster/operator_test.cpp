// The operator against a real control plane: gangs, preemption, and its own death at any time.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/cluster/operator_fixture.h"

namespace loadline::testing {
namespace {

using nlohmann::json;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

TEST_F(OperatorOnAControlPlane, RunsAJobToItsEndAndThenWritesNothing) {
  const CommandResult applied = cluster().apply(job_named("plain", lasting("3")).dump());
  ASSERT_TRUE(applied.ok()) << applied.error;
  ASSERT_TRUE(succeeded("plain")) << job("plain")["status"].dump(1);
  EXPECT_EQ(job("plain")["status"]["attempt"], 1);
  const json before = job("plain");
  std::this_thread::sleep_for(5s);
  EXPECT_EQ(job("plain")["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
}

TEST_F(OperatorOnAControlPlane, MovesAReclaimedGangToAnotherPoolWithTheSameClaim) {
  ASSERT_TRUE(cluster().apply(job_named("moved", lasting("forever|3")).dump()).ok());
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
  ASSERT_TRUE(cluster().apply(job_named("killed", lasting("forever|2")).dump()).ok());
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
  ASSERT_TRUE(cluster().apply(job_named("paused", lasting("forever|3")).dump()).ok());
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
  json annotations = lasting("1");
  annotations["loadline.dev/fake-exit-code"] = "1";
  annotations["loadline.dev/fake-exit-message"] = "ValueError: bad sample 17";
  ASSERT_TRUE(cluster().apply(job_named("failing", annotations).dump()).ok());
  ASSERT_TRUE(cluster().wait_for_condition("trainingjob/failing", "Failed", 120s)) << job("failing")["status"].dump(1);
  const json status = job("failing")["status"];
  EXPECT_EQ(status["endings"]["userFailures"], 3);
  EXPECT_NE(status["attempts"].back()["detail"].get<std::string>().find("bad sample 17"), std::string::npos);
}

}  // namespace
}  // namespace loadline::testing
