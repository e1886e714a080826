#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace loadline::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kJob = R"(
apiVersion: loadline.dev/v1alpha1
kind: TrainingJob
metadata: {name: sft, namespace: team}
spec:
  model: {preset: llama-3.1-8b}
  training: {method: full, sequenceLength: 4096, microBatchSize: 1, globalBatchSize: 64, tokens: 1.0e9}
  gpus: {count: 8}
  template: {spec: {containers: [{name: trainer, image: x}]}}
)";

constexpr const char* kPools = R"(
---
apiVersion: loadline.dev/v1alpha1
kind: GPUPool
metadata: {name: a100}
spec:
  nodeSelector: {pool: a100}
  gpu: {product: NVIDIA-A100-SXM4-80GB, memoryMiBPerGPU: 81920, perNode: 8, interconnect: nvswitch}
  capacityType: on-demand
  price: {perGPUHour: "2.40", currency: USD, asOf: "2026-11-28"}
---
apiVersion: loadline.dev/v1alpha1
kind: GPUPool
metadata: {name: t4}
spec:
  nodeSelector: {pool: t4}
  gpu: {product: Tesla-T4, memoryMiBPerGPU: 15360, perNode: 1, interconnect: pcie}
  capacityType: spot
)";

struct Outcome {
  int code;
  std::string output, errors;
};

Outcome call(const std::vector<std::string>& arguments, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out, err;
  const TimePoint now = *parse_rfc3339("2026-11-30T12:00:00Z");
  const int code = run(arguments, {in, out, err, now});
  return {code, out.str(), err.str()};
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CommandLine, HelpIsNotAnError) {
  const Outcome help = call({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("estimate"));
  EXPECT_THAT(help.output, HasSubstr("2 bad input"));
}

TEST(CommandLine, AMistypedCommandIsBadInput) {
  EXPECT_EQ(call({}).code, 2);
  EXPECT_EQ(call({"estimat", "-f", "-"}).code, 2);
  EXPECT_EQ(call({"estimate"}).code, 2);
  EXPECT_EQ(call({"estimate", "-f", "-", "-o", "xml"}, kJob).code, 2);
  EXPECT_EQ(call({"estimate", "-f", "-", "--gpus", "0"}, kJob).code, 2);
}

TEST(CommandLine, SaysEveryFieldThatIsWrongAtOnce) {
  const std::string bad = with(with(kJob, "method: full", "method: fulll"), "count: 8", "cuont: 8");
  const Outcome outcome = call({"estimate", "-f", "-"}, bad);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, StartsWith("standard input: TrainingJob \"sft\" is invalid:\n"));
  EXPECT_THAT(outcome.errors, HasSubstr("\n* spec.training.method: "));
  EXPECT_THAT(outcome.errors, HasSubstr("\n* spec.gpus.cuont: "));
  EXPECT_EQ(outcome.output, "");
}

TEST(CommandLine, SaysWhichModelIsUnknown) {
  const Outcome outcome = call({"plan", "-f", "-"}, with(kJob, "llama-3.1-8b", "llama-3.1-9b"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("spec.model.preset"));
  EXPECT_THAT(outcome.errors, HasSubstr("llama-3.1-9b"));
}

TEST(CommandLine, WantsAJobOfThisVersion) {
  EXPECT_THAT(call({"estimate", "-f", "-"}, "kind: ConfigMap\napiVersion: v1\n").errors, HasSubstr("no TrainingJob"));
  const Outcome old = call({"estimate", "-f", "-"}, with(kJob, "v1alpha1", "v1beta7"));
  EXPECT_EQ(old.code, 2);
  EXPECT_THAT(old.errors, HasSubstr("must be \"loadline.dev/v1alpha1\""));
}

TEST(CommandLine, ReadsStandardInputOnlyOnce) { EXPECT_EQ(call({"plan", "-f", "-", "--pools", "-"}, kJob).code, 2); }

TEST(Estimate, FindsTheSmallestCardThatHoldsTheJob) {
  const Outcome outcome = call({"estimate", "-f", "-"}, kJob);
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, StartsWith("sft: needs "));
  EXPECT_THAT(outcome.output, HasSubstr("\nthe smallest card that holds it is "));
  EXPECT_THAT(outcome.output, HasSubstr("\nSizing:\n  Model llama-3.1-8b"));
  EXPECT_THAT(outcome.output, HasSubstr("\nCheckpoint:\n"));
}

TEST(Estimate, OnANamedCardSaysWhatIsShortAndWhatWouldFit) {
  const Outcome outcome = call({"estimate", "-f", "-", "--gpu", "T4"}, kJob);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("does not fit on T4 (usable 14.3 GiB): short "));
  EXPECT_THAT(outcome.output, HasSubstr("Would fit"));
}

TEST(Estimate, RefusesACardThatIsNotKnown) {
  const Outcome outcome = call({"estimate", "-f", "-", "--gpu", "Voodoo2"}, kJob);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("--gpu: Unsupported value: Voodoo2"));
}

TEST(Estimate, GivesTheSameFiguresAsJson) {
  const Outcome outcome = call({"estimate", "-f", "-", "--gpu", "A100-SXM4-80GB", "-o", "json"}, kJob);
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json data = json::parse(outcome.output);
  EXPECT_EQ(data.at("gpus"), 8);
  EXPECT_TRUE(data.at("fits").get<bool>());
  EXPECT_LE(data.at("peakMiBPerGPU").get<int>(), data.at("usableMiBPerGPU").get<int>());
  EXPECT_FALSE(data.at("explanation").empty());
}

TEST(Estimate, TriesCountsUntilOneFitsWhenTheJobLeavesThemOpen) {
  const std::string open = with(kJob, "gpus: {count: 8}", "gpus: {min: 2, max: 64}");
  const json data = json::parse(call({"estimate", "-f", "-", "--gpu", "L4", "-o", "json"}, open).output);
  EXPECT_TRUE(data.at("fits").get<bool>()) << data.dump(1);
  EXPECT_GE(data.at("gpus").get<int>(), 8);
}

TEST(Estimate, ReportsEveryJobOfAFileAndTheWorstIsTheExitCode) {
  const std::string two =
      std::string(kJob) + "---" + with(with(kJob, "name: sft", "name: tiny"), "llama-3.1-8b", "qwen2.5-0.5b");
  const Outcome outcome = call({"estimate", "-f", "-", "--gpu", "T4"}, two);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("\n---\n\ntiny: needs "));
  EXPECT_EQ(json::parse(call({"estimate", "-f", "-", "-o", "json"}, two).output).size(), 2U);
}

TEST(Plan, PicksThePoolThatFitsAndSaysWhyTheOtherDoesNot) {
  const Outcome outcome = call({"plan", "-f", "-"}, std::string(kJob) + kPools);
  EXPECT_EQ(outcome.code, 0) << outcome.errors << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("a100"));
  EXPECT_THAT(outcome.output, HasSubstr("t4: refused"));
  EXPECT_THAT(outcome.output, HasSubstr("\nSizing:\n"));
  EXPECT_THAT(outcome.output, HasSubstr("\nPlacement:\n"));
}

TEST(Plan, RefusesWhatNoPoolCanHold) {
  const std::string big = with(kJob, "llama-3.1-8b", "llama-3.1-70b");
  const Outcome outcome = call({"plan", "-f", "-"}, big + kPools);
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("\nRefused:\n  spec."));
}

TEST(Plan, HonoursAPolicyAndALimitOfThePool) {
  const std::string policy = R"(
---
apiVersion: loadline.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: no-a100}
spec: {selector: {namespaces: [team]}, deny: {pools: [a100]}}
)";
  const Outcome denied = call({"plan", "-f", "-"}, std::string(kJob) + kPools + policy);
  EXPECT_EQ(denied.code, 1) << denied.output;
  EXPECT_THAT(denied.output, HasSubstr("no-a100"));

  const std::string one_node =
      with(kPools, "capacityType: on-demand", "capacityType: on-demand\n  scaling: {maxNodes: 1}");
  EXPECT_EQ(call({"plan", "-f", "-"}, std::string(kJob) + one_node).code, 0);
  EXPECT_EQ(call({"plan", "-f", "-"}, with(kJob, "count: 8", "count: 16") + one_node).code, 1);
  EXPECT_EQ(call({"plan", "-f", "-"}, with(kJob, "count: 8", "count: 16") + kPools).code, 0);
}

TEST(Plan, SaysWhatIsWrongWithAPool) {
  const std::string pools = with(kPools, "\"2.40\"", "\"-1\"");
  const Outcome outcome = call({"plan", "-f", "-"}, std::string(kJob) + pools);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("GPUPool \"a100\" is invalid:\n* spec.price.perGPUHour"));
}

TEST(Plan, GivesTheStatusThatTheOperatorWouldWriteAsJson) {
  const Outcome outcome = call({"plan", "-f", "-", "-o", "json"}, std::string(kJob) + kPools);
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json data = json::parse(outcome.output);
  EXPECT_EQ(data.at("status").at("placement").at("pool"), "a100");
  EXPECT_FALSE(data.at("status").at("sizing").at("explanation").empty());
}

}  // namespace
}  // namespace loadline::cli
