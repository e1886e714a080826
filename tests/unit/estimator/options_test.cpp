// What a job can turn on beside its method, and what a framework does by itself: each with the bytes it costs or saves.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "estimator/estimate.h"
#include "estimator/quantities.h"
#include "workload_builder.h"

namespace loadline::estimator {
namespace {

api::TrainingJobSpec lora_spec(const char* preset) {
  api::TrainingJobSpec spec = spec_of(preset);
  spec.training.method = api::Method::Lora;
  spec.training.lora = api::LoraSpec{8, {"q", "v"}};
  return spec;
}

// litgpt's own table: Llama-2-13B with LoRA on four cards takes 33.1 GiB of each, hardly less than on one.
TEST(TextbookFailure, FrozenFlatParametersGetGradientsAllTheSame) {
  api::TrainingJobSpec spec = lora_spec("llama-2-13b");
  spec.training.framework = api::Framework::LitGpt;
  spec.training.precision = api::Precision::Bf16;
  spec.training.sequenceLength = 1304;
  spec.training.loss = api::Loss::Chunked;
  const Workload w = resolved(spec);
  const Estimate four = estimate(w, zero(Sharding::Zero3, 4));
  EXPECT_EQ(four.peak_use()[Term::HeldGradients], 2 * w.parameters.total);
  EXPECT_NEAR(allocated_gib(four), 33.127, 0.5);
}

TEST(Options, InterleavedStagesHoldMoreMicroBatchesThanPlainOnes) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.framework = api::Framework::Megatron;
  spec.training.globalBatchSize = 64;
  const Workload w = resolved(spec);
  Layout l = one_gpu(1, Recompute::None);
  l.gpus = l.pipeline = 4;
  const Quantities plain = quantities(w, l, Stage::First);
  l.virtual_stages = 8;
  const Quantities interleaved = quantities(w, l, Stage::First);
  EXPECT_EQ(plain.in_flight, 4);
  // Narayanan et al.: L layers' worth times 1 + (p - 1) / (p v).
  EXPECT_NEAR(interleaved.in_flight, 4 * (1 + 3.0 / (4 * 8)), 1e-12);
  EXPECT_EQ(quantities(w, l, Stage::Last).in_flight, (7 * 4 + 1) / 8.0);
}

TEST(Options, HybridShardingSharesOnlyInsideAGroup) {
  const Workload w = resolved(spec_of("llama-3.1-8b"));
  Layout l = zero(Sharding::Zero3, 16);
  const double sixteen = in_phase(estimate(w, l), Phase::Loss)[Term::Weights];
  l.replicate = 2;
  EXPECT_DOUBLE_EQ(in_phase(estimate(w, l), Phase::Loss)[Term::Weights], 2 * sixteen);
}

TEST(Options, DoraTrainsAMagnitudePerOutput) {
  api::TrainingJobSpec spec = lora_spec("llama-3.1-8b");
  const double plain = resolved(spec).adapters;
  spec.training.lora->dora = true;
  EXPECT_EQ(resolved(spec).adapters - plain, 32 * (4096 + 1024));
}

TEST(Options, EmbeddingsTrainedWholeBringACopyWithAllItsStates) {
  api::TrainingJobSpec spec = lora_spec("llama-3.1-8b");
  spec.training.precision = api::Precision::Bf16;
  const PhaseUse plain = in_phase(estimate(resolved(spec), one_gpu(1, Recompute::None)), Phase::OptimizerStep);
  spec.training.lora->trainEmbeddings = true;
  const Workload w = resolved(spec);
  const PhaseUse whole = in_phase(estimate(w, one_gpu(1, Recompute::None)), Phase::OptimizerStep);
  const double vocabulary = w.parameters.embedding + w.parameters.head;
  EXPECT_EQ(w.trained, w.adapters + vocabulary);
  // bf16 weight 2, gradient 2, two moments 4 and the step's temporary 2.
  EXPECT_DOUBLE_EQ(whole.allocated() - plain.allocated(), 10 * vocabulary);
}

TEST(Options, QuantizationSaysHowManyBytesAFrozenWeightTakes) {
  api::TrainingJobSpec spec = lora_spec("mistral-7b-v0.1");
  spec.training.method = api::Method::QLora;
  spec.training.framework = api::Framework::HuggingFace;
  EXPECT_EQ(resolved(spec).quantised_bytes, 0.5159) << "the framework's own choice";
  spec.training.lora->quantization = api::Quantization::Nf4;
  EXPECT_EQ(resolved(spec).quantised_bytes, 0.5625);
  spec.training.lora->quantization = api::Quantization::Gptq;
  EXPECT_EQ(resolved(spec).quantised_bytes, 0.5195);
}

TEST(Options, KbitPreparationCanBeLeftOut) {
  api::TrainingJobSpec spec = lora_spec("mistral-7b-v0.1");
  spec.training.method = api::Method::QLora;
  spec.training.framework = api::Framework::HuggingFace;
  const Workload prepared = resolved(spec);
  spec.training.lora->upcast = false;
  const Workload plain = resolved(spec);
  const Estimate before = estimate(prepared, one_gpu());
  const Estimate after = estimate(plain, one_gpu());
  EXPECT_GT(in_phase(before, Phase::Loss)[Term::EmbeddingUpcast], 0);
  EXPECT_EQ(in_phase(after, Phase::Loss)[Term::EmbeddingUpcast], 0);
  EXPECT_EQ(in_phase(before, Phase::Loss)[Term::KeptActivations],
            2 * in_phase(after, Phase::Loss)[Term::KeptActivations]);
}

TEST(Options, AnOptimizerInTheBackwardPassLeavesOneLayersGradients) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.precision = api::Precision::Bf16;
  spec.training.optimizerInBackward = true;
  const Workload w = resolved(spec);
  EXPECT_EQ(in_phase(estimate(w, one_gpu(1, Recompute::None)), Phase::OptimizerStep)[Term::Gradients],
            2 * w.parameters.embedding);
}

TEST(Options, RecomputeOfEverySecondLayerKeepsHalfOfThem) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.checkpointEvery = 2;
  const Workload w = resolved(spec);
  const PhaseUse every =
      in_phase(estimate(resolved(spec_of("llama-3.1-8b")), one_gpu(1, Recompute::None)), Phase::Loss);
  const PhaseUse half = in_phase(estimate(w, one_gpu()), Phase::Loss);
  const double inputs = 16.0 * static_cast<double>(w.sequence) * 4096 * 2;
  EXPECT_DOUBLE_EQ(half[Term::KeptActivations], every[Term::KeptActivations] / 2 + inputs);
}

TEST(Options, OffloadedLayerInputsLeaveTwoOnTheCard) {
  const Workload w = resolved(spec_of("llama-3.1-8b"));
  const double kept = in_phase(estimate(w, one_gpu()), Phase::Loss)[Term::KeptActivations];
  EXPECT_EQ(in_phase(estimate(w, one_gpu(1, Recompute::Offload)), Phase::Loss)[Term::KeptActivations], kept / 16);
}

TEST(Options, PagedStatesAreCountedInHostMemory) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.optimizer = api::Optimizer::PagedAdamW;
  const Estimate e = estimate(resolved(spec), one_gpu());
  EXPECT_EQ(in_phase(e, Phase::Loss)[Term::OptimizerStates], 0);
  EXPECT_GT(e.host_bytes_per_node, 0);
}

TEST(Options, CompiledLayersKeepLess) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  const double eager =
      in_phase(estimate(resolved(spec), one_gpu(1, Recompute::None)), Phase::Loss)[Term::KeptActivations];
  spec.training.compile = true;
  const double compiled =
      in_phase(estimate(resolved(spec), one_gpu(1, Recompute::None)), Phase::Loss)[Term::KeptActivations];
  EXPECT_LT(compiled, 0.85 * eager);
}

TEST(Options, TheAllocatorsCacheCountsWhenTheTrainerTurnsExpandableSegmentsOff) {
  api::TrainingJobSpec spec = lora_spec("llama-3.1-8b");
  const auto with_variable = [&](const char* value, const char* name = "PYTORCH_CUDA_ALLOC_CONF") {
    spec.podTemplate = {
        {"spec", {{"containers", {{{"name", "trainer"}, {"env", {{{"name", name}, {"value", value}}}}}}}}}};
    return resolved(spec);
  };
  EXPECT_TRUE(resolved(spec).expandable_segments);
  EXPECT_TRUE(with_variable("expandable_segments:True").expandable_segments);
  EXPECT_FALSE(with_variable("max_split_size_mb:512", "PYTORCH_ALLOC_CONF").expandable_segments);
  const Workload native = with_variable("max_split_size_mb:512");
  EXPECT_FALSE(native.expandable_segments);
  const Estimate splintered = estimate(native, one_gpu());
  spec.podTemplate = nullptr;
  const Estimate whole = estimate(resolved(spec), one_gpu());
  EXPECT_EQ(splintered.allocated_bytes, whole.allocated_bytes);
  EXPECT_GT(splintered.peak_bytes, whole.peak_bytes);
}

TEST(Options, ExpertGroupsThatShareABatchExchangeNoTokens) {
  api::TrainingJobSpec spec = spec_of("mixtral-8x7b");
  const auto dispatched = [&](api::Framework framework) {
    spec.training.framework = framework;
    Layout l = zero(Sharding::Zero3, 8);
    l.expert = 8;
    return quantities(resolved(spec), l, Stage::First).dispatched_elements;
  };
  EXPECT_EQ(dispatched(api::Framework::HuggingFace), 2 * 2 * 4096);
  EXPECT_EQ(dispatched(api::Framework::DeepSpeed), 2 * 2 * 4096 * 1.25) << "the fullest rank has more than the mean";
}

TEST(Options, MegatronsSelectiveRecomputeDropsOnlyTheScoresOfAttention) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.framework = api::Framework::Megatron;
  const auto kept = [&](Recompute recompute) {
    const PhaseUse use = in_phase(estimate(resolved(spec), one_gpu(1, recompute)), Phase::Loss);
    return std::pair(use[Term::KeptActivations], use[Term::AttentionScores]);
  };
  EXPECT_EQ(kept(Recompute::Selective), kept(Recompute::None));
  spec.training.attention = api::Attention::Eager;
  EXPECT_EQ(kept(Recompute::Selective).first, kept(Recompute::None).first);
  EXPECT_GT(kept(Recompute::None).second, 0);
  EXPECT_EQ(kept(Recompute::Selective).second, 0);
}

TEST(Options, ExpertGroupsThatShareABatchSplitOnlyTheExperts) {
  api::TrainingJobSpec spec = spec_of("mixtral-8x7b");
  const double experts = resolved(spec).parameters.experts;
  const double others = resolved(spec).parameters.total - experts;
  const auto weights_on_16 = [&](api::Framework framework, std::int64_t data) {
    spec.training.framework = framework;
    Layout l = zero(Sharding::Zero3, data);
    l.gpus = 16;
    l.expert = 8;
    return in_phase(estimate(resolved(spec), l), Phase::Loss)[Term::Weights];
  };
  EXPECT_DOUBLE_EQ(weights_on_16(api::Framework::HuggingFace, 2), 2 * (experts / 8 + others) / 2);
  EXPECT_DOUBLE_EQ(weights_on_16(api::Framework::DeepSpeed, 16), 2 * (experts + others) / 16);
}

TEST(Options, AGarbledTemplateIsNoReasonToFail) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  for (const char* text : {"5", "[]", R"({"spec":3})", R"({"spec":{"containers":{"name":"trainer","env":7}}})",
                           R"({"spec":{"containers":[1,{"name":"trainer","env":[null,{"name":4}]}]}})"}) {
    spec.podTemplate = nlohmann::json::parse(text);
    EXPECT_TRUE(resolved(spec).expandable_segments) << text;
  }
}

TEST(Muon, WorksOnOneWholeMatrixHoweverManyRanksShare) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.framework = api::Framework::TorchTitan;
  spec.training.optimizer = api::Optimizer::Muon;
  for (const std::int64_t ranks : {2, 8}) {
    const Estimate e = estimate(resolved(spec), zero(Sharding::Zero3, ranks));
    EXPECT_EQ(in_phase(e, Phase::OptimizerStep)[Term::OptimizerTemporary], 8.0 * 4096 * 14336) << ranks;
  }
}

}  // namespace
}  // namespace loadline::estimator
