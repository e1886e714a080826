#include "operator/endings.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "operator/gang.h"

namespace loadline::controller {
namespace {

using api::AttemptCause;

Evidence on(const std::string& capacity) {
  Evidence e;
  e.pod = "llama-a1-0-x";
  e.node = "node-7";
  e.capacity = capacity;
  return e;
}

TEST(EndingTable, IsReadWhole) {
  ASSERT_GE(ending_rows().size(), 20U);
  for (const EndingRow& row : ending_rows()) {
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_FALSE(row.words.empty()) << row.name;
    const bool says_something = !row.node.empty() || !row.disruption.empty() || !row.pod.empty() ||
                                !row.container.empty() || !row.waiting.empty() || !row.job.empty() ||
                                !row.log.empty() || !row.exit.empty();
    EXPECT_TRUE(says_something) << row.name << " would match anything";
  }
}

TEST(EndingTable, RefusesUnknownWords) {
  EXPECT_FALSE(parse_ending_rows("rows: [{name: x, words: w, source: s, cause: Nonsense, when: {exit: 1}}]"));
  EXPECT_FALSE(parse_ending_rows("rows: [{name: x, words: w, source: s, cause: Preempted, when: {moon: full}}]"));
  EXPECT_FALSE(parse_ending_rows("rows: [{name: x, words: w, source: s, cause: Preempted, when: "));
}

struct Case {
  const char* name;
  Evidence evidence;
  AttemptCause cause;
  const char* row;
};

Evidence with(Evidence e, const std::function<void(Evidence&)>& change) {
  change(e);
  return e;
}

std::vector<Case> cases() {
  return {
      {"a reclaimed spot node", with(on("spot"), [](Evidence& e) { e.node_state = "gone"; }), AttemptCause::Preempted,
       "spot-node-gone"},
      {"a node that vanished elsewhere", with(on("on-demand"), [](Evidence& e) { e.node_state = "gone"; }),
       AttemptCause::Infrastructure, "node-gone"},
      {"a silent spot node", with(on("spot"), [](Evidence& e) { e.node_state = "lost"; }), AttemptCause::Preempted,
       "spot-node-lost"},
      {"a pod of higher priority", with(on("on-demand"), [](Evidence& e) { e.disruption = "PreemptionByScheduler"; }),
       AttemptCause::Preempted, "preempted-by-scheduler"},
      {"a drain", with(on("spot"), [](Evidence& e) { e.disruption = "EvictionByEvictionAPI"; }),
       AttemptCause::PolicyEviction, "evicted-by-api"},
      {"a graceful shutdown of spot", with(on("spot"), [](Evidence& e) { e.disruption = "TerminationByKubelet"; }),
       AttemptCause::Preempted, "spot-node-shut-down"},
      {"a kubelet under pressure", with(on("reserved"), [](Evidence& e) { e.disruption = "TerminationByKubelet"; }),
       AttemptCause::Infrastructure, "collected"},
      {"a kubelet that refuses GPU pods",
       with(on("spot"), [](Evidence& e) { e.pod_reason = "UnexpectedAdmissionError"; }), AttemptCause::Infrastructure,
       "refused-by-kubelet"},
      {"CUDA out of memory",
       with(on("spot"),
            [](Evidence& e) {
              e.exit_code = 1;
              e.log_tail = "step 3\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n";
            }),
       AttemptCause::OutOfMemory, "gpu-out-of-memory"},
      {"the host memory limit",
       with(on("spot"),
            [](Evidence& e) {
              e.exit_code = 137;
              e.container_reason = "OOMKilled";
            }),
       AttemptCause::OutOfMemory, "host-out-of-memory"},
      {"a broken GPU",
       with(on("on-demand"),
            [](Evidence& e) {
              e.exit_code = 1;
              e.log_tail = "RuntimeError: CUDA error: uncorrectable ECC error encountered";
            }),
       AttemptCause::Infrastructure, "gpu-broken"},
      {"an image that is not there", with(on("spot"), [](Evidence& e) { e.waiting_reason = "ImagePullBackOff"; }),
       AttemptCause::UserFailure, "cannot-start"},
      {"a Python traceback", with(on("spot"), [](Evidence& e) { e.exit_code = 1; }), AttemptCause::UserFailure,
       "exit-code"},
      {"a segmentation fault", with(on("spot"), [](Evidence& e) { e.exit_code = 139; }), AttemptCause::UserFailure,
       "segmentation-fault"},
      {"a kill from outside", with(on("spot"), [](Evidence& e) { e.exit_code = 143; }), AttemptCause::Infrastructure,
       "killed"},
      {"only the Job's word, on spot", with(on("spot"), [](Evidence& e) { e.job_reason = "PodFailurePolicy"; }),
       AttemptCause::Preempted, "spot-job-policy"},
  };
}

TEST(EndingTable, TellsEachStoryByItsEvidence) {
  for (const Case& c : cases()) {
    const auto ending = classify({c.evidence});
    ASSERT_TRUE(ending) << c.name;
    EXPECT_EQ(ending->cause, c.cause) << c.name;
    EXPECT_EQ(ending->row, c.row) << c.name;
    EXPECT_EQ(ending->detail.find('{'), std::string::npos) << ending->detail;
    EXPECT_EQ(ending->detail.find('\n'), std::string::npos) << ending->detail;
  }
}

TEST(EndingTable, BelievesTheLostNodeBeforeTheErrorsItCausedElsewhere) {
  Evidence failed = on("spot"), lost = on("spot");
  failed.exit_code = 1;
  failed.log_tail = "NCCL error: unhandled system error";
  lost.node_state = "gone";
  lost.node = "node-8";
  const auto ending = classify({failed, lost});
  ASSERT_TRUE(ending);
  EXPECT_EQ(ending->cause, AttemptCause::Preempted);
  EXPECT_EQ(ending->node, "node-8");
}

TEST(EndingTable, BlamesTheFirstFailureNotThePodsKilledInItsWake) {
  Evidence failed = on("on-demand"), killed = on("on-demand");
  failed.exit_code = 3;
  killed.exit_code = 143;
  EXPECT_EQ(classify({killed, failed})->row, "exit-code");
}

TEST(EndingTable, QuotesTheTellingLineOfALongLog) {
  Evidence e = on("spot");
  e.exit_code = 1;
  e.log_tail = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\nsome other line\n";
  EXPECT_EQ(
      classify({e})->detail,
      "GPU memory ran out in pod llama-a1-0-x: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB");
}

TEST(EndingTable, PutsTheJobControllersWordsIntoPlainOnes) {
  struct Told {
    const char* message;
    const char* capacity;
    const char* detail;
  };
  const char* raw = "Pod team/llama-a1-0-4m8st has condition DisruptionTarget matching FailJob rule at index 0";
  const Told told[] = {
      {raw, "spot", "pod llama-a1-0-4m8st was disrupted on spot capacity: it was gone before it could be asked why"},
      {raw, "on-demand", "pod llama-a1-0-4m8st was disrupted: it was gone before it could be asked why"},
      {"Container trainer for pod team/llama-a1-1-x failed with exit code 42 matching FailJob rule at index 0", "spot",
       "pod llama-a1-1-x was disrupted on spot capacity: it was gone before it could be asked why"},
      {"worded in another way", "spot", "a pod was disrupted on spot capacity: worded in another way"},
      {"Pod ", "spot", "a pod was disrupted on spot capacity: Pod "},
      {"Pod team/", "spot", "a pod was disrupted on spot capacity: Pod team/"},
      {"", "spot", "a pod was disrupted on spot capacity: no message"},
  };
  JobView job;
  job.reason = "PodFailurePolicy";
  for (const Told& row : told) {
    job.message = row.message;
    const auto ending = classify(evidence({}, job, row.capacity));
    ASSERT_TRUE(ending) << row.message;
    EXPECT_EQ(ending->detail, row.detail);
  }
}

TEST(EndingTable, NamesTheNodeOfTheDisruptedPodWhenThePodIsStillThere) {
  Member bystander, disrupted;
  bystander.pod = kube::Object(nlohmann::json{{"metadata", {{"name", "llama-a1-0-x"}}}});
  bystander.node = "node-1";
  disrupted.pod = kube::Object(nlohmann::json{{"metadata", {{"name", "llama-a1-1-y"}}}});
  disrupted.node = "node-2";
  JobView job;
  job.reason = "PodFailurePolicy";
  job.message = "Pod team/llama-a1-1-y has condition DisruptionTarget matching FailJob rule at index 0";
  const auto ending = classify(evidence({bystander, disrupted}, job, "spot"));
  ASSERT_TRUE(ending);
  EXPECT_EQ(ending->node, "node-2");
  EXPECT_EQ(ending->detail.find("pod llama-a1-1-y on node-2 was disrupted on spot capacity"), 0U) << ending->detail;
}

TEST(EndingTable, SaysNothingWithoutEvidence) { EXPECT_FALSE(classify({on("spot")})); }

}  // namespace
}  // namespace loadline::controller
