// An attempt that fails or never starts: what counts, when the next one may start, and what is kept of the past.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/rules.h"
#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

TEST(Failure, IsRetriedAfterAPauseThatDoubles) {
  World world = two_pools_and_a_job();
  world.settle_running();
  world.fail_gang("llama-a1", 1, "ValueError: bad sample");
  world.settle();
  EXPECT_EQ(world.phase(), "Restarting");
  EXPECT_EQ(world.status()["attempt"], 1);
  ASSERT_TRUE(world.requeue);
  EXPECT_EQ(*world.requeue, seconds(10));
  world.pass(seconds(10));
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 2);
  world.run_gangs();
  world.settle();
  world.fail_gang("llama-a2", 1, "ValueError: bad sample");
  world.settle();
  ASSERT_TRUE(world.requeue);
  EXPECT_EQ(*world.requeue, seconds(20));
}

TEST(Failure, WaitsAsLongAsItWasToldEvenBeyondTheLongestWait) {
  json job = llama();
  job["spec"]["restart"] = {{"backoff", "1h"}};
  World world = two_pools_and_a_job(job);
  world.settle_running();
  world.fail_gang("llama-a1", 1, "ValueError: bad sample");
  world.settle();
  ASSERT_TRUE(world.requeue);
  EXPECT_EQ(*world.requeue, seconds(3600));
}

using api::AttemptCause;

struct Ended {
  AttemptCause cause;
  int minutes;  // from start to end
};

struct Pause {
  std::string name;
  std::vector<Ended> attempts;
  std::optional<int> seconds;
};

class PauseTest : public testing::TestWithParam<Pause> {};

TEST_P(PauseTest, FollowsTheNewestAttempts) {
  api::TrainingJobStatus status;
  TimePoint clock = *parse_rfc3339("2026-11-30T00:00:00Z");
  for (const Ended& ended : GetParam().attempts) {
    api::AttemptStatus attempt;
    attempt.cause = ended.cause;
    attempt.startTime = rfc3339(clock);
    clock += std::chrono::minutes(ended.minutes);
    attempt.endTime = rfc3339(clock);
    status.attempts.push_back(attempt);
  }
  const auto next = restart_time({}, status);
  ASSERT_EQ(next.has_value(), GetParam().seconds.has_value());
  if (next) {
    EXPECT_EQ(*next - clock, seconds(*GetParam().seconds));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, PauseTest,
    testing::Values(
        Pause{"NoneAtFirst", {}, {}}, Pause{"NoneAfterPreemption", {{AttemptCause::Preempted, 1}}, {}},
        Pause{"OfTenSecondsAfterALossAtOnce", {{AttemptCause::Infrastructure, 1}}, 10},
        Pause{"NoneAfterALossOfALongRun", {{AttemptCause::Infrastructure, 60}}, {}},
        Pause{"DoublingWithEachLossAtOnce", {{AttemptCause::Infrastructure, 1}, {AttemptCause::Infrastructure, 1}}, 20},
        Pause{
            "NewAfterALongRun",
            {{AttemptCause::Infrastructure, 1}, {AttemptCause::Infrastructure, 60}, {AttemptCause::Infrastructure, 1}},
            10},
        Pause{"OfHalfAMinuteAfterTheUsersFailure", {{AttemptCause::UserFailure, 60}}, 30},
        Pause{"DoublingHoweverLongTheUsersCodeRan",
              {{AttemptCause::UserFailure, 60}, {AttemptCause::UserFailure, 60}},
              60},
        Pause{"OfTenMinutesAtMost", std::vector<Ended>(9, {AttemptCause::UserFailure, 1}), 600}),
    [](const auto& test) { return test.param.name; });

TEST(Failure, OfANodeToTakeThePodKeepsTheNextAttemptOffThatNodeForAWhile) {
  World world;
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  world.add_node("spot-0", a100_labels("spot", true));
  world.put(resources::kTrainingJobs, llama());
  world.settle_running();
  world.end_pod("llama-a1-0-x", "Failed", 0, "");
  world.at(core::kPods, {"team", "llama-a1-0-x"})["status"]["reason"] = "UnexpectedAdmissionError";
  world.add_condition(core::kJobs, {"team", "llama-a1"}, "FailureTarget", "BackoffLimitExceeded", "");
  world.settle();
  ASSERT_EQ(world.status()["attempts"][0]["cause"], "Infrastructure");
  world.pass(seconds(60));
  world.settle();
  EXPECT_EQ(world.phase(), "Waiting");
  world.pass(seconds(600));
  world.settle();
  EXPECT_EQ(world.phase(), "Starting") << "there is no other node, and it may be well again";
}

TEST(Failure, EndsTheJobAtTheLimitAndSaysWhy) {
  json job = llama();
  job["spec"]["restart"] = {{"maxFailures", 2}, {"backoff", "1s"}};
  World world = two_pools_and_a_job(job);
  for (int i = 1; i <= 2; ++i) {
    world.settle_running();
    world.fail_gang("llama-a" + std::to_string(i), 1, "ValueError: bad sample 17");
    world.settle();
    world.pass(seconds(60));
  }
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")["reason"], "TooManyFailures");
  EXPECT_THAT(world.condition("Failed")["message"].get<std::string>(), HasSubstr("bad sample 17"));
  EXPECT_EQ(world.condition("Succeeded")["status"], "False");
  world.settle();
  EXPECT_EQ(world.status()["attempt"], 2);
}

TEST(Failure, WaitsForBetterEvidenceWhileAPeerIsSilent) {
  json job = llama();
  job["spec"]["gpus"]["count"] = 16;
  World world;
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  world.add_node("spot-0", a100_labels("spot", true));
  world.add_node("spot-1", a100_labels("spot", true));
  world.put(resources::kTrainingJobs, job);
  world.settle_running();
  world.pass(seconds(600));
  // Rank 1's machine is off; rank 0 only sees its connection break, and the Job fails for that.
  world.end_pod("llama-a1-0-x", "Failed", 1, "NCCL error: connection reset by peer");
  world.add_condition(core::kJobs, {"team", "llama-a1"}, "FailureTarget", "BackoffLimitExceeded", "");
  world.settle();
  EXPECT_FALSE(world.status()["attempts"][0].contains("cause"));
  world.pass(seconds(40));
  world.reclaim_node("spot-1");
  world.settle();
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Preempted");
  EXPECT_EQ(world.status()["endings"]["userFailures"], 0);
}

TEST(Start, ThatNeverComesEndsTheAttemptAsInfrastructure) {
  World world = two_pools_and_a_job();
  world.settle();
  world.remove(core::kNodes, {"", "spot-0"});
  world.run_gangs();
  world.settle();
  EXPECT_EQ(world.phase(), "Starting");
  world.pass(seconds(601));
  world.settle();
  EXPECT_EQ(world.status()["attempts"][0]["cause"], "Infrastructure");
  EXPECT_THAT(world.status()["attempts"][0]["detail"].get<std::string>(), HasSubstr("0 of 1 pods"));
}

TEST(History, IsBoundedAndItsCountersAreNot) {
  World world = two_pools_and_a_job();
  for (int i = 1; i <= 25; ++i) {
    world.settle_running();
    world.pass(seconds(4000));
    const kube::ObjectKey key{"team", "llama-a" + std::to_string(i)};
    ASSERT_TRUE(world.has(core::kJobs, key)) << i << " " << world.status().dump(1);
    for (const kube::Object& pod : world.pods_of(world.get(core::kJobs, key).uid())) {
      world.end_pod(pod.name(), "Failed", 143, "");
    }
    world.add_condition(core::kJobs, key, "Failed", "PodFailurePolicy", std::string(5000, 'x'));
    world.settle();
  }
  EXPECT_LE(world.status()["attempts"].size(), 10U);
  const json endings = world.status()["endings"];
  EXPECT_EQ(endings["preemptions"].get<int>() + endings["infrastructure"].get<int>(), 25);
  EXPECT_LT(world.status().dump().size(), 32U * 1024);
}

}  // namespace
}  // namespace loadline::controller
