#include "estimator/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include <map>
#include <nlohmann/json.hpp>

#include "estimator/estimate.h"
#include "workload_builder.h"

namespace loadline::estimator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> fields_of(const Result<Workload>& result) {
  std::vector<std::string> out;
  if (result.ok()) return out;
  for (const FieldError& e : result.error().fields) out.push_back(e.field);
  return out;
}

FieldError only_error(const api::TrainingJobSpec& spec) {
  const auto result = workload_from(spec);
  EXPECT_FALSE(result.ok());
  if (result.ok()) return {};
  EXPECT_EQ(result.error().fields.size(), 1U);
  return result.error().fields.at(0);
}

TEST(Workload, ReportsEveryFaultAtOnceWithPathsAndValuesAsTyped) {
  api::TrainingJobSpec spec;
  spec.model.preset = "llama-9";
  spec.training.microBatchSize = 0;
  spec.training.globalBatchSize = -4;
  spec.training.objective = api::Objective::Grpo;
  spec.training.method = api::Method::Lora;
  spec.training.lora = api::LoraSpec{-1, {"q", "router"}};
  const auto result = workload_from(spec);
  EXPECT_THAT(fields_of(result),
              UnorderedElementsAre("spec.model.preset", "spec.training.sequenceLength", "spec.training.microBatchSize",
                                   "spec.training.globalBatchSize", "spec.training.objective",
                                   "spec.training.lora.rank", "spec.training.lora.targets[1]"));
  std::map<std::string, std::string> typed;
  for (const FieldError& e : result.error().fields) typed[e.field] = e.value;
  EXPECT_EQ(typed["spec.training.lora.targets[1]"], "router");
  EXPECT_EQ(typed["spec.training.globalBatchSize"], "-4");
}

TEST(Workload, SaysWhatIsNotSupportedYetInsteadOfIgnoringIt) {
  for (const api::Objective objective : {api::Objective::Ppo, api::Objective::Grpo}) {
    api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
    spec.training.objective = objective;
    const FieldError e = only_error(spec);
    EXPECT_EQ(e.type, FieldError::Type::NotSupported);
    EXPECT_THAT(e.detail, HasSubstr("not supported yet: "));
  }
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.model = {};
  spec.model.huggingFaceConfigMapRef = api::ConfigMapKeyRef{"my-config", {}};
  const FieldError e = only_error(spec);
  EXPECT_EQ(e.field, "spec.model.huggingFaceConfigMapRef");
  EXPECT_EQ(e.value, "my-config");
  EXPECT_THAT(e.detail, HasSubstr("not supported yet: "));
}

TEST(Workload, NeedsExactlyOneModel) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.model.parameters = 8e9;
  EXPECT_EQ(only_error(spec).field, "spec.model");
  spec.model = {};
  EXPECT_EQ(only_error(spec).type, FieldError::Type::Required);
}

TEST(Workload, ChecksThatTheBatchesComeOutWhole) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.microBatchSize = 3;
  spec.training.globalBatchSize = 64;
  EXPECT_EQ(only_error(spec).field, "spec.training.globalBatchSize");
}

TEST(Workload, RefusesASequenceLongerThanATrainedPositionTable) {
  api::TrainingJobSpec spec = spec_of("gpt2");
  spec.training.sequenceLength = 2048;
  const FieldError e = only_error(spec);
  EXPECT_EQ(e.field, "spec.training.sequenceLength");
  EXPECT_THAT(e.detail, HasSubstr("1024"));
}

TEST(Workload, KeepsTheBoundsOfTheSchema) {
  const auto detail = [](const std::function<void(api::TrainingSpec&)>& change) {
    api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
    change(spec.training);
    return only_error(spec).detail;
  };
  EXPECT_EQ(detail([](auto& t) { t.sequenceLength = 16'777'217; }), "must be between 1 and 16777216");
  EXPECT_EQ(detail([](auto& t) { t.globalBatchSize = 16'777'217; }), "must be between 1 and 16777216");
  EXPECT_EQ(detail([](auto& t) { t.microBatchSize = 65'537; }), "must be between 1 and 65536");
  for (const std::int64_t rank : {0, 8193}) {
    EXPECT_EQ(detail([&](auto& t) {
                t.method = api::Method::Lora;
                t.lora = api::LoraSpec{rank, {}};
              }),
              "must be between 1 and 8192");
  }
}

TEST(Workload, RefusesFieldsOfAnotherMethod) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.lora = api::LoraSpec{};
  EXPECT_EQ(only_error(spec).field, "spec.training.lora");
  spec.training.lora.reset();
  spec.training.frozenLayers = 4;
  EXPECT_EQ(only_error(spec).field, "spec.training.frozenLayers");
  spec.training.method = api::Method::Freeze;
  spec.training.frozenLayers = 33;
  EXPECT_THAT(only_error(spec).detail, HasSubstr("(32)"));
}

TEST(Workload, TakesTheLengthOfARunInTokensStepsOrEpochs) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.tokens = 1e9;
  EXPECT_EQ(resolved(spec).total_tokens, 1e9);
  spec.training.tokens.reset();
  spec.training.steps = 100;
  spec.training.globalBatchSize = 64;
  EXPECT_EQ(resolved(spec).total_tokens, 100.0 * 64 * 4096);
  spec.training.steps.reset();
  spec.training.epochs = 3;
  EXPECT_EQ(only_error(spec).field, "spec.training.datasetTokens");
  spec.training.datasetTokens = 2e8;
  EXPECT_EQ(resolved(spec).total_tokens, 6e8);
  spec.training.tokens = 1;
  EXPECT_EQ(only_error(spec).field, "spec.training");
}

TEST(Workload, DefaultsLoraToRank16OnEveryMatrixOfTheLayers) {
  api::TrainingJobSpec spec = spec_of("mistral-7b-v0.1");
  spec.training.method = api::Method::Lora;
  const Workload w = resolved(spec);
  EXPECT_EQ(w.lora.rank, 16);
  // q, k, v, o, gate, up, down of Mistral-7B at rank 16: 41.9 million.
  EXPECT_EQ(w.adapters, 41'943'040);
  spec.training.lora = api::LoraSpec{16, {"q", "k", "v", "o"}};
  EXPECT_EQ(resolved(spec).adapters, 13'631'488);
}

// Two experts, fewer matrices than the layers have of others.
TEST(Workload, KnowsTheAdaptersOfRoutedExpertsHoweverFewThereAre) {
  api::TrainingJobSpec spec = spec_of("mistral-7b-v0.1");
  spec.model.preset.reset();
  spec.model.architecture = api::ArchitectureSpec{};
  api::ArchitectureSpec& a = *spec.model.architecture;
  a.layers = 4;
  a.hidden = 256;
  a.heads = 4;
  a.ffn = 1024;
  a.vocab = 1000;
  a.experts = 2;
  a.topK = 1;
  spec.training.method = api::Method::Lora;
  spec.training.lora = api::LoraSpec{16, {"gate", "up", "down"}};
  const Workload w = resolved(spec);
  EXPECT_EQ(w.expert_adapters, 4.0 * 2 * 3 * 16 * (256 + 1024));
  EXPECT_EQ(w.adapters, w.expert_adapters);
  EXPECT_EQ(w.adapted_inputs, 256 + 256 + 1024) << "one expert's matrices";
}

TEST(Workload, TriedWithAdaptersIsSizedAsOneThatAskedForThem) {
  api::TrainingJobSpec spec = spec_of("mistral-7b-v0.1");
  spec.training.optimizerInBackward = true;
  const Workload full = resolved(spec);
  spec.training.optimizerInBackward.reset();
  spec.training.method = api::Method::Lora;
  const Workload lora = resolved(spec);
  const Workload tried = with_lora(full, 16);
  EXPECT_EQ(estimate(tried, one_gpu()).peak_bytes, estimate(lora, one_gpu()).peak_bytes);
  EXPECT_FALSE(tried.optimizer_in_backward);
  EXPECT_EQ(tried.bands.one_gpu, lora.bands.one_gpu);
  EXPECT_NE(tried.bands.one_gpu, full.bands.one_gpu);
}

TEST(Workload, TakesTargetsAsFrameworksSpellThem) {
  api::TrainingJobSpec spec = spec_of("mistral-7b-v0.1");
  spec.training.method = api::Method::Lora;
  spec.training.lora = api::LoraSpec{8, {"q_proj", "lm_head"}};
  EXPECT_THAT(resolved(spec).lora.targets, ElementsAre("q", "head"));
}

// One model, four ways to name it: the estimates are the same to the byte.
TEST(InputPaths, GiveIdenticalEstimates) {
  const auto estimate_of = [](const api::ModelSpec& model) {
    api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
    spec.model = model;
    return estimate(resolved(spec), zero(Sharding::Zero3, 8, 2));
  };
  api::ModelSpec preset;
  preset.preset = "llama-3.1-8b";
  api::ModelSpec pasted;
  pasted.huggingFaceConfig = nlohmann::json::parse(R"({"model_type":"llama","hidden_size":4096,
      "intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,
      "vocab_size":128256,"tie_word_embeddings":false,"max_position_embeddings":131072})");
  api::ModelSpec from_config_map = pasted;
  from_config_map.huggingFaceConfigMapRef = api::ConfigMapKeyRef{"config", {}};
  api::ModelSpec numbers;
  numbers.architecture.emplace();
  numbers.architecture->layers = 32;
  numbers.architecture->hidden = 4096;
  numbers.architecture->heads = 32;
  numbers.architecture->kvHeads = 8;
  numbers.architecture->headDim = 128;
  numbers.architecture->ffn = 14336;
  numbers.architecture->vocab = 128256;
  const Estimate expected = estimate_of(preset);
  for (const api::ModelSpec& model : {pasted, from_config_map, numbers}) {
    const Estimate e = estimate_of(model);
    EXPECT_EQ(e.peak_bytes, expected.peak_bytes);
    for (std::size_t i = 0; i < kTerms; ++i) EXPECT_EQ(e.peak_use().bytes[i], expected.peak_use().bytes[i]);
  }
}

TEST(Constraints, KeepWhatIsGivenAndLeaveTheRestOpen) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  EXPECT_FALSE(constraints_from(spec).tensor);
  spec.parallelism.emplace().tensor = 4;
  spec.parallelism->offload = Offload::Optimizer;
  EXPECT_EQ(constraints_from(spec).tensor, 4);
  EXPECT_EQ(constraints_from(spec).offload, Offload::Optimizer);
  EXPECT_FALSE(constraints_from(spec).pipeline);
}

struct Misplaced {
  const char* field;
  std::function<void(api::TrainingJobSpec&)> change;
};

class MisplacedOption : public testing::TestWithParam<Misplaced> {};

TEST_P(MisplacedOption, IsRefusedUnderItsField) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  GetParam().change(spec);
  EXPECT_EQ(only_error(spec).field, GetParam().field);
}

INSTANTIATE_TEST_SUITE_P(Options, MisplacedOption,
                         testing::Values(Misplaced{"spec.training.checkpointEvery",
                                                   [](auto& spec) {
                                                     spec.training.activationCheckpointing =
                                                         api::ActivationCheckpointing::None;
                                                     spec.training.checkpointEvery = 2;
                                                   }},
                                         Misplaced{"spec.training.checkpointEvery",
                                                   [](auto& spec) { spec.training.checkpointEvery = 0; }},
                                         Misplaced{"spec.training.optimizerInBackward",
                                                   [](auto& spec) {
                                                     spec.training.method = api::Method::Lora;
                                                     spec.training.optimizerInBackward = true;
                                                   }},
                                         Misplaced{"spec.training.lora.quantization",
                                                   [](auto& spec) {
                                                     spec.training.method = api::Method::Lora;
                                                     spec.training.lora = api::LoraSpec{};
                                                     spec.training.lora->quantization = api::Quantization::Gptq;
                                                   }},
                                         Misplaced{"spec.training.lora.upcast",
                                                   [](auto& spec) {
                                                     spec.training.method = api::Method::Lora;
                                                     spec.training.lora = api::LoraSpec{};
                                                     spec.training.lora->upcast = true;
                                                   }},
                                         Misplaced{"spec.parallelism.virtualStages",
                                                   [](auto& spec) {
                                                     spec.parallelism = api::ParallelismSpec{};
                                                     spec.parallelism->pipeline = 1;
                                                     spec.parallelism->virtualStages = 2;
                                                   }},
                                         Misplaced{"spec.parallelism.replicate", [](auto& spec) {
                                                     spec.parallelism = api::ParallelismSpec{};
                                                     spec.parallelism->sharding = api::Sharding::None;
                                                     spec.parallelism->replicate = 2;
                                                   }}));

}  // namespace
}  // namespace loadline::estimator
