#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
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
  EXPECT_EQ(old.errors,
            "standard input: apiVersion: Unsupported value: \"loadline.dev/v1beta7\": supported values: "
            "\"loadline.dev/v1alpha1\"\n");
}

TEST(CommandLine, SaysWhatWasThereInsteadOfAJob) {
  EXPECT_EQ(call({"plan", "-f", "-"}, std::string(kPools) + "---\n{kind: Namespace, apiVersion: v1}\n").errors,
            "no TrainingJob (apiVersion loadline.dev/v1alpha1) in what -f names; there is 2 GPUPool, 1 Namespace\n");
  EXPECT_THAT(call({"plan", "-f", "-"}, "").errors, HasSubstr("; there is nothing\n"));
}

TEST(CommandLine, DropsNoObjectThatIsMeantToBeOurs) {
  const std::string good = std::string(kJob) + "---";
  const Outcome kind = call({"estimate", "-f", "-"}, good + with(kJob, "TrainingJob", "Trainingjob"));
  EXPECT_EQ(kind.code, 2);
  EXPECT_EQ(kind.errors,
            "standard input: kind: Unsupported value: \"Trainingjob\": supported values: \"TrainingJob\", \"GPUPool\", "
            "\"PlacementPolicy\"\n");
  const Outcome none = call({"estimate", "-f", "-"}, good + with(kJob, "apiVersion: loadline.dev/v1alpha1\n", ""));
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.errors, "standard input: apiVersion: Required value: must be \"loadline.dev/v1alpha1\"\n");
  const Outcome other = call({"estimate", "-f", "-"}, good + with(kJob, "loadline.dev/v1alpha1", "v1"));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.errors, HasSubstr("apiVersion: Unsupported value: \"v1\""));
}

TEST(CommandLine, LetsObjectsOfOthersPass) {
  const std::string others = "---\n{kind: Namespace, apiVersion: v1, metadata: {name: team}}\n";
  EXPECT_EQ(call({"estimate", "-f", "-"}, kJob + others).code, 0);
}

struct Slip {
  const char* from;
  const char* to;
  const char* said;
};

class SlipInAJob : public testing::TestWithParam<Slip> {};

TEST_P(SlipInAJob, IsRefusedByEveryCommandAsAdmissionWould) {
  const std::string bad = with(kJob, GetParam().from, GetParam().to);
  for (const char* command : {"estimate", "plan"}) {
    const Outcome outcome = call({command, "-f", "-"}, bad + kPools);
    EXPECT_EQ(outcome.code, 2) << command << GetParam().to << outcome.output;
    EXPECT_THAT(outcome.errors, StartsWith("standard input: TrainingJob \"")) << GetParam().to;
    EXPECT_THAT(outcome.errors, HasSubstr(std::string("\n* ") + GetParam().said)) << GetParam().to;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SlipInAJob,
    testing::Values(
        Slip{"  gpus:", "  queueName: foo\n  gpus:", "spec.queueName: Unsupported value: foo: not supported yet"},
        Slip{"  gpus:", "  launcher: mpi\n  gpus:", "spec.launcher: Unsupported value: mpi: not supported yet"},
        Slip{"  gpus:", "  checkpoint: {interval: sometimes}\n  gpus:", "spec.checkpoint.interval: Invalid value: "},
        Slip{"  gpus:", "  checkpoint: {keepLast: 1000000000000}\n  gpus:", "spec.checkpoint.keepLast: Too large: "},
        Slip{"name: trainer, image: x}", "name: a, image: x}, {name: b, image: x}", "spec.template.spec.containers"},
        Slip{"count: 8", "count: 8, min: 4", "spec.gpus.count: Invalid value: 8: give either count, or min and max"},
        Slip{"count: 8", "min: 9, max: 4", "spec.gpus.min: Invalid value: 9: must not exceed max 4"},
        Slip{"count: 8", "count: 0", "spec.gpus.count: Invalid value: 0: must be at least 1"},
        Slip{"name: sft", "name: Llama_SFT", "metadata.name: Invalid value: \"Llama_SFT\": metadata.name must be "},
        Slip{"name: sft, ", "", "metadata.name: Required value: must be given"},
        Slip{"{preset: llama-3.1-8b}", "{parameters: 1e300}", "spec.model.parameters: Too large: "},
        Slip{"sequenceLength: 4096", "sequenceLength: 50000000", "spec.training.sequenceLength: Invalid value: "},
        Slip{"tokens: 1.0e9", "tokens: 1.0e19", "spec.training.tokens: Too large: 1e+19: must be at most 1e+18"},
        Slip{"tokens: 1.0e9", "epochs: 0, datasetTokens: 5",
             "spec.training.epochs: Invalid value: 0: must be more than 0"},
        Slip{"  gpus:", "  parallelism: {tensor: 2048}\n  gpus:", "spec.parallelism.tensor: Too large: 2048"},
        Slip{"  gpus:", "  placement: {pools: [a, a]}\n  gpus:", "spec.placement.pools[1]: Duplicate value: \"a\""},
        Slip{"  gpus:", "  placement: {pools: ['']}\n  gpus:", "spec.placement.pools[0]: Invalid value: "},
        Slip{"  gpus:", "  checkpoint: {volume: {accessModes: [RWX]}}\n  gpus:",
             "spec.checkpoint.volume.accessModes[0]: Invalid value: \"RWX\": must be ReadWriteOnce"}));

TEST(CommandLine, SaysAllThatIsWrongWithAJobAtOnceAndNothingTwice) {
  std::string bad = with(kJob, "count: 8", "count: 0, cuont: 8");
  bad = with(bad, "name: sft", "name: -");
  bad = with(bad, "sequenceLength: 4096", "sequenceLength: 0");
  const std::string errors = call({"plan", "-f", "-"}, bad).errors;
  for (const char* field :
       {"metadata.name: ", "spec.gpus.cuont: ", "spec.gpus.count: ", "spec.training.sequenceLength: "}) {
    const auto at = errors.find(std::string("\n* ") + field);
    EXPECT_NE(at, std::string::npos) << field << errors;
    EXPECT_EQ(errors.find(std::string("\n* ") + field, at + 1), std::string::npos) << field << errors;
  }
}

TEST(CommandLine, SaysTheVersionOfTheChart) {
  std::ifstream chart(std::string(LOADLINE_SOURCE_DIR) + "/charts/loadline/Chart.yaml");
  std::string version;
  for (std::string line; std::getline(chart, line);) {
    if (line.starts_with("appVersion: ")) version = line.substr(12);
  }
  const Outcome outcome = call({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.output, "kubectl-loadline " + version + "\n");
}

TEST(CommandLine, NamesTheCommandThatItDoesNotKnow) {
  EXPECT_EQ(call({"estimat", "-f", "-"}).errors,
            "unknown command \"estimat\": did you mean \"estimate\"? There are estimate and plan\n");
  EXPECT_EQ(call({"apply"}).errors, "unknown command \"apply\": There are estimate and plan\n");
}

/// A batch that 8 ranks cannot share, in a framework that only has ranks.
std::string job_without_layout() {
  return with(with(with(kJob, "name: sft", "name: odd"), "globalBatchSize: 64", "globalBatchSize: 7"), "{method: full",
              "{framework: huggingface, method: full");
}

TEST(CommandLine, GivesAListOfReportsWhereverSeveralJobsWereRead) {
  for (const char* command : {"estimate", "plan"}) {
    const Outcome outcome = call({command, "-f", "-", "-o", "json"}, job_without_layout() + "---" + kJob + kPools);
    EXPECT_TRUE(json::parse(outcome.output).is_array()) << outcome.output;
  }
  EXPECT_EQ(call({"estimate", "-f", "-", "-o", "json"}, job_without_layout()).output, "");
}

TEST(CommandLine, NamesTheFileOfAJobThatCannotBeReportedOn) {
  const Outcome outcome = call({"estimate", "-f", "-"}, job_without_layout() + "---" + kJob);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, StartsWith("standard input: TrainingJob \"odd\" is invalid:\n"));
  EXPECT_THAT(outcome.output, StartsWith("sft: needs "));
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

TEST(Estimate, ChoosesAmongTheCardsThatTheJobNames) {
  const std::string named = with(kJob, "  gpus:", "  placement: {gpuModels: [B200, A100-80GB]}\n  gpus:");
  EXPECT_THAT(call({"estimate", "-f", "-"}, named).output,
              HasSubstr("\nthe smallest card among spec.placement.gpuModels that holds it is A100"));
  const Outcome none = call({"estimate", "-f", "-"}, with(kJob, "  gpus:", "  placement: {gpuModels: [T4]}\n  gpus:"));
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.output, HasSubstr("\nno card known among spec.placement.gpuModels holds it; the largest is T4"));
  const Outcome unknown =
      call({"estimate", "-f", "-"}, with(kJob, "  gpus:", "  placement: {gpuModels: [Voodoo2]}\n  gpus:"));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("spec.placement.gpuModels: Unsupported value: Voodoo2"));
}

TEST(Estimate, SpreadsGpusOverEqualNodesAsThePlanDoes) {
  const std::string twelve = with(with(kJob, "count: 8", "count: 12"), "globalBatchSize: 64", "globalBatchSize: 48");
  const json data = json::parse(call({"estimate", "-f", "-", "--gpu", "A100-80GB", "-o", "json"}, twelve).output);
  EXPECT_EQ(data.at("gpus"), 12);
  EXPECT_TRUE(data.at("fits").get<bool>()) << data.dump(1);
  EXPECT_EQ(call({"plan", "-f", "-"}, twelve + kPools).code, 0);
  const std::string range = with(twelve, "count: 12", "min: 9, max: 12");
  EXPECT_EQ(json::parse(call({"estimate", "-f", "-", "--gpu", "A100-80GB", "-o", "json"}, range).output).at("gpus"),
            12);
}

TEST(Estimate, BlamesTheFieldThatWasTypedWhenThereIsNoLayout) {
  const auto errors = [](const std::string& job, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"estimate", "-f", "-"});
    return call(more, job).errors;
  };
  EXPECT_THAT(errors(job_without_layout()),
              HasSubstr("\n* spec.training.globalBatchSize: Invalid value: 7: the global batch of 7 sequences is not a "
                        "whole number of micro-batches on 8 data-parallel ranks; multiples of 8 are"));
  EXPECT_THAT(errors(with(kJob, "count: 8", "count: 65536")), HasSubstr("\n* spec.gpus.count: Invalid value: 65536: "));
  EXPECT_THAT(errors(kJob, {"--gpus", "65536"}), HasSubstr("\n* --gpus: Invalid value: 65536: "));
  EXPECT_THAT(errors(with(kJob, "  gpus:", "  parallelism: {tensor: 16}\n  gpus:")),
              HasSubstr("\n* spec.parallelism.tensor: Invalid value: 16: "));
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

TEST(Plan, SaysWhatIsWrongWithAPoolOrPolicyAsAdmissionWould) {
  const auto errors = [](const std::string& pools) { return call({"plan", "-f", "-"}, kJob + pools).errors; };
  EXPECT_THAT(errors(with(kPools, "perNode: 8", "perNode: -8")),
              HasSubstr("* spec.gpu.perNode: Invalid value: -8: must be at least 1"));
  EXPECT_THAT(errors(with(kPools, "perNode: 8", "perNode: 2048")),
              HasSubstr("* spec.gpu.perNode: Too large: 2048: must be at most 1024"));
  EXPECT_THAT(errors(with(kPools, "currency: USD", "currency: dollars")), HasSubstr("* spec.price.currency: "));
  EXPECT_THAT(errors(with(kPools, "name: a100", "name: A100_80")), HasSubstr("* metadata.name: Invalid value: "));
  EXPECT_THAT(errors(R"(
---
apiVersion: loadline.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: none}
spec: {allow: {pools: [a100]}, deny: {pools: [a100]}}
)"),
              HasSubstr("* spec.deny.pools: Invalid value: denies everything"));
}

TEST(Plan, WarnsOfWhatIsKeptAndNotUsed) {
  const std::string pools = with(kPools, "currency: USD", "currency: USD, billingSeconds: 60");
  const Outcome outcome = call({"plan", "-f", "-"}, kJob + pools);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.errors,
            "Warning: standard input: GPUPool \"a100\": kept, but not used yet: spec.price.billingSeconds\n");
}

TEST(Plan, BlamesTheFieldThatWasTypedWhenThereIsNoLayout) {
  EXPECT_THAT(call({"plan", "-f", "-"}, job_without_layout() + kPools).output,
              HasSubstr("\nRefused:\n  spec.training.globalBatchSize: Invalid value: 7: "));
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
