// The textbook's failures, each as a test: what a plain "bytes per parameter plus 34 s b h"
// formula gets wrong. Measured figures are from public benchmark tables, named at the test.
#include "estimator/estimate.h"

#include <gtest/gtest.h>

#include <set>

#include "estimator/quantities.h"
#include "workload_builder.h"

namespace loadline::estimator {
namespace {

// fms-acceleration benchmarks, Mistral-7B, full fine-tune in bf16, one A100: 67.46 GiB
// allocated with micro-batch 4 and with micro-batch 8.
TEST(TextbookFailure, TheAdamWTemporaryMakesTheOptimizerStepThePeakWhateverTheBatch) {
  const Workload w = resolved(spec_of("mistral-7b-v0.1"));
  for (const std::int64_t batch : {4, 8}) {
    const Estimate e = estimate(w, one_gpu(batch));
    EXPECT_EQ(e.peak_use().phase, Phase::OptimizerStep);
    EXPECT_NEAR(allocated_gib(e), 67.46, 0.1);
    EXPECT_EQ(e.peak_use()[Term::OptimizerTemporary], 2 * w.parameters.total);
  }
}

// The same benchmarks, LoRA rank 16 on q, k, v, o: 24.871 GiB at micro-batch 4, 36.082 at 8.
TEST(TextbookFailure, LogitsDominateALoraRunAndGrowWithTheBatch) {
  api::TrainingJobSpec spec = spec_of("mistral-7b-v0.1");
  spec.training.method = api::Method::Lora;
  spec.training.lora = api::LoraSpec{16, {"q", "k", "v", "o"}};
  const Workload w = resolved(spec);
  const Estimate four = estimate(w, one_gpu(4));
  const Estimate eight = estimate(w, one_gpu(8));
  EXPECT_EQ(four.peak_use().phase, Phase::Loss);
  EXPECT_NEAR(allocated_gib(four), 24.871, 0.25);
  EXPECT_NEAR(allocated_gib(eight), 36.082, 0.25);
  EXPECT_EQ(four.peak_use()[Term::Logits], 4.0 * 4096 * (14.0 * 32000 + 6.0 * 4096));
}

// scenario: vocabulary of 152k and 64k tokens: the loss alone needs more than most cards have.
TEST(TextbookFailure, LogitsOfALongSequenceAreThereUnlessTheLossIsFused) {
  api::TrainingJobSpec spec = spec_of("qwen2.5-7b");
  spec.training.sequenceLength = 65536;
  const Estimate standard = estimate(resolved(spec), one_gpu());
  spec.training.loss = api::Loss::Fused;
  const Estimate fused = estimate(resolved(spec), one_gpu());
  EXPECT_GT(as_gib(standard.peak_use()[Term::Logits]), 100);
  EXPECT_LT(as_gib(in_phase(fused, Phase::Loss)[Term::Logits]), 12);
  EXPECT_LT(fused.peak_bytes, standard.peak_bytes);
}

TEST(TextbookFailure, FrozenWeightsCarryNoGradientsAndNoOptimizerStates) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.method = api::Method::Lora;
  spec.training.lora = api::LoraSpec{16, {"q", "v"}};
  const Workload w = resolved(spec);
  // q: 4096 -> 4096 and v: 4096 -> 1024, rank 16, 32 layers.
  EXPECT_EQ(w.adapters, 32.0 * 16 * (4096 + 4096 + 4096 + 1024));
  const PhaseUse step = in_phase(estimate(w, one_gpu()), Phase::OptimizerStep);
  EXPECT_EQ(step[Term::Gradients], 4 * w.adapters);
  EXPECT_EQ(step[Term::OptimizerStates], 8 * w.adapters);
  EXPECT_EQ(step[Term::Master], 0);
  EXPECT_EQ(step[Term::Weights], 2 * w.parameters.total + 4 * w.adapters);
}

TEST(TextbookFailure, AdaptersOnExpertsCountEveryExpert) {
  api::TrainingJobSpec spec = spec_of("mixtral-8x7b");
  spec.training.method = api::Method::Lora;
  spec.training.lora = api::LoraSpec{16, {"up"}};
  EXPECT_EQ(resolved(spec).adapters, 32.0 * 8 * 16 * (4096 + 14336));
}

// fms-acceleration, bnb QLoRA with peft preparation, Mistral-7B: 19.25 GiB at micro-batch 4,
// 34.461 at 8: a slope that only fp32 layer inputs explain.
TEST(TextbookFailure, KbitPreparationUpcastsEmbeddingsAndTheStreamBetweenLayers) {
  api::TrainingJobSpec spec = spec_of("mistral-7b-v0.1");
  spec.training.method = api::Method::QLora;
  spec.training.lora = api::LoraSpec{16, {"q", "k", "v", "o"}};
  const Workload w = resolved(spec);
  const PhaseUse loss = in_phase(estimate(w, one_gpu(4)), Phase::Loss);
  EXPECT_EQ(loss[Term::KeptActivations], 4.0 * 4096 * 32 * 4096 * 4);
  EXPECT_EQ(loss[Term::EmbeddingUpcast], 2 * (w.parameters.total - w.parameters.linear));
  EXPECT_NEAR(allocated_gib(estimate(w, one_gpu(4))), 19.25, 0.05 * 19.25);
  EXPECT_NEAR(allocated_gib(estimate(w, one_gpu(8))), 34.461, 0.05 * 34.461);
}

TEST(TextbookFailure, QuantisationLeavesEmbeddingsHeadAndNormsAlone) {
  api::TrainingJobSpec spec = spec_of("qwen2.5-7b");
  spec.training.method = api::Method::QLora;
  const Workload w = resolved(spec);
  const double outside = w.parameters.total - w.parameters.linear;
  EXPECT_GT(outside, 2 * w.parameters.embedding * 0.99) << "embedding and untied head";
  const PhaseUse use = estimate(w, one_gpu()).peak_use();
  EXPECT_NEAR(use[Term::Weights], 0.5159 * w.parameters.linear + 2 * outside + 4 * w.adapters, 1);
}

TEST(TextbookFailure, TheLastPipelineStageHoldsTheHeadAndTheLogits) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.framework = api::Framework::Megatron;
  spec.training.precision = api::Precision::Bf16Mixed;
  spec.training.globalBatchSize = 32;
  const Workload w = resolved(spec);
  Layout l = one_gpu(1, Recompute::None);
  l.gpus = l.pipeline = 4;
  const Estimate e = estimate(w, l);
  EXPECT_EQ(e.phase_count, 6U);
  EXPECT_EQ(in_phase(e, Phase::Loss, Stage::First)[Term::Logits], 0);
  EXPECT_GT(in_phase(e, Phase::Loss, Stage::Last)[Term::Logits], 0);
  // One-forward-one-backward: the first of four stages holds four micro-batches, the last one.
  EXPECT_EQ(in_phase(e, Phase::Loss, Stage::First)[Term::KeptActivations],
            4 * in_phase(e, Phase::Loss, Stage::Last)[Term::KeptActivations]);
}

TEST(TextbookFailure, ATiedHeadOnItsOwnStageNeedsItsOwnCopy) {
  api::TrainingJobSpec spec = spec_of("llama-3.2-3b");
  spec.training.framework = api::Framework::Megatron;
  const Workload w = resolved(spec);
  Layout l = one_gpu();
  l.gpus = l.pipeline = 4;
  const double per_stage = quantities(w, l, Stage::First).local + 3 * quantities(w, l, Stage::Last).local;
  EXPECT_GT(per_stage, w.parameters.total);
  EXPECT_EQ(quantities(w, l, Stage::Last).head, 128256.0 * 3072);
}

// Megatron-LM golden values, GPT 7B, TP 4, DP 2, micro-batch 2, sequence 8192: 53.22 GiB
// allocated, of which 19.24 at rest.
TEST(TextbookFailure, TensorParallelismWithoutSequenceParallelismDoesNotSplitTheNorms) {
  Workload w = resolved(spec_of("llama-2-7b"));
  w.recipe = *Tables::builtin().recipe("megatron");
  w.precision = api::Precision::Bf16Mixed;
  w.sequence = 8192;
  w.model.kv_heads = 8;
  w.model.ffn = 16384;
  w.model.mlp_matrices = 2;
  w.model.vocab = 131584;
  w.model.norm_bias = w.model.qkv_bias = w.model.output_bias = w.model.mlp_bias = true;
  w.model.tied = true;
  w.model.learned_positions = 8192;
  w.parameters = count_parameters(w.model);
  w.trained = w.parameters.total;
  Layout l = zero(Sharding::Zero1, 2, 2);
  l.recompute = Recompute::None;
  l.tensor = 4;
  l.gpus = 8;
  EXPECT_NEAR(allocated_gib(estimate(w, l)), 53.22, 0.08 * 53.22);
}

TEST(TextbookFailure, GroupedQueriesNeedLessThanFullHeads) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  Workload w = resolved(spec);
  const std::int64_t grouped = estimate(w, one_gpu(1, Recompute::None)).peak_bytes;
  w.model.kv_heads = 32;
  w.parameters = count_parameters(w.model);
  w.trained = w.parameters.total;
  EXPECT_GT(estimate(w, one_gpu(1, Recompute::None)).peak_bytes, grouped);
}

TEST(TextbookFailure, HeadSizeIsNotHiddenOverHeads) {
  const Workload w = resolved(spec_of("qwen3-4b"));
  const Quantities q = quantities(w, one_gpu(1, Recompute::None), Stage::First);
  // 32 heads of 128 with hidden 2560: queries are 4096 wide. Query/key norms keep three more copies.
  EXPECT_EQ(q.head_elements, 2.0 * 32 * 128 + 2.0 * 8 * 128 + 3.0 * (32 + 8) * 128);
}

TEST(TextbookFailure, Fp8SavesNoMemory) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.framework = api::Framework::TorchTitan;
  spec.training.precision = api::Precision::Bf16Mixed;
  const std::int64_t bf16 = estimate(resolved(spec), zero(Sharding::Zero3, 8)).peak_bytes;
  spec.training.precision = api::Precision::Fp8;
  EXPECT_GE(estimate(resolved(spec), zero(Sharding::Zero3, 8)).peak_bytes, bf16);
}

// HF Trainer with FSDP and bf16=True keeps fp32 weights: 20 B per parameter over the ranks
// at the step; fms-acceleration measures 74.8 GiB for Llama-3-8B on two GPUs.
TEST(TextbookFailure, AutocastUnderFsdpKeepsFp32WeightsSoTwoGpusNeedAsMuchAsOneInBf16) {
  api::TrainingJobSpec spec = spec_of("meta-llama/Meta-Llama-3-8B");
  spec.training.precision = api::Precision::Bf16Mixed;
  spec.training.loss = api::Loss::Fused;
  EXPECT_NEAR(allocated_gib(estimate(resolved(spec), zero(Sharding::Zero3, 2, 4))), 74.8, 1);
}

TEST(TextbookFailure, EagerAttentionStoresScoresAndFlashDoesNot) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  EXPECT_EQ(estimate(resolved(spec), one_gpu(1, Recompute::None)).peak_use()[Term::AttentionScores], 0);
  spec.training.attention = api::Attention::Eager;
  const Estimate e = estimate(resolved(spec), one_gpu(1, Recompute::None));
  EXPECT_EQ(e.peak_use()[Term::AttentionScores], 6.0 * 4096 * 4096 * 32 * 32);
}

TEST(TextbookFailure, EagerAttentionNeedsTheScoresOfALayerEvenWhenTheyAreComputedAgain) {
  api::TrainingJobSpec spec = spec_full_at_the_end();
  const std::int64_t flash = estimate(resolved(spec), one_gpu()).peak_bytes;
  spec.training.attention = api::Attention::Eager;
  EXPECT_GE(estimate(resolved(spec), one_gpu()).peak_bytes - flash, std::int64_t{6} * 4096 * 4096 * 32);
}

TEST(TextbookFailure, AccumulationKeepsGradientsThroughTheForwardPass) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.globalBatchSize = 1;
  EXPECT_EQ(in_phase(estimate(resolved(spec), one_gpu()), Phase::Loss)[Term::Gradients], 0);
  spec.training.globalBatchSize = 8;
  const Workload w = resolved(spec);
  EXPECT_EQ(in_phase(estimate(w, one_gpu()), Phase::Loss)[Term::Gradients], 2 * w.parameters.total);
}

TEST(TextbookFailure, ZeroThreeOfASmallModelHoldsBucketsAndLiveParameters) {
  api::TrainingJobSpec spec = spec_of("qwen2.5-1.5b");
  spec.training.framework = api::Framework::DeepSpeed;
  spec.training.precision = api::Precision::Bf16Mixed;
  const PhaseUse use = in_phase(estimate(resolved(spec), zero(Sharding::Zero3, 8)), Phase::LayerBackward);
  EXPECT_GE(as_gib(use[Term::GatherBuffers]), 1.8) << "a pool of up to 1e9 live parameters in bf16";
  EXPECT_GE(as_gib(use[Term::ReduceBuffers]), 1.8) << "two buckets of 5e8 elements";
}

TEST(Estimate, FreezingLeadingLayersKeepsNothingForThem) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.method = api::Method::Freeze;
  spec.training.frozenLayers = 24;
  const Estimate e = estimate(resolved(spec), one_gpu(1, Recompute::None));
  const Estimate full = estimate(resolved(spec_of("llama-3.1-8b")), one_gpu(1, Recompute::None));
  EXPECT_EQ(in_phase(e, Phase::Loss)[Term::KeptActivations],
            in_phase(full, Phase::Loss)[Term::KeptActivations] * 8 / 32);
  EXPECT_LT(e.peak_bytes, full.peak_bytes);
}

TEST(Estimate, PreferenceTrainingHoldsAReferenceCopyAndTwoAnswersUnlessAdaptersSwitchOff) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.objective = api::Objective::Dpo;
  const Workload full = resolved(spec);
  EXPECT_EQ(estimate(full, one_gpu()).peak_use()[Term::ReferenceModel], 2 * full.parameters.total);
  spec.training.method = api::Method::Lora;
  const Workload lora = resolved(spec);
  const Estimate e = estimate(lora, one_gpu());
  EXPECT_EQ(e.peak_use()[Term::ReferenceModel], 0);
  EXPECT_EQ(e.peak_use()[Term::KeptActivations], 2.0 * 4096 * 32 * 4096 * 2);
}

TEST(Estimate, OffloadMovesStatesToTheHostAndSaysHowMuch) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.framework = api::Framework::DeepSpeed;
  spec.training.precision = api::Precision::Bf16Mixed;
  const Workload w = resolved(spec);
  Layout l = zero(Sharding::Zero3, 16);
  l.offload = Offload::Optimizer;
  const Estimate e = estimate(w, l);
  EXPECT_EQ(e.peak_use()[Term::OptimizerStates] + e.peak_use()[Term::Master], 0);
  // Master 4, moments 8, fp32 gradients 4, half the ranks on each of two nodes, slack 1.5.
  EXPECT_NEAR(static_cast<double>(e.host_bytes_per_node), 1.5 * 16 * w.parameters.total / 2, 1e3);
  EXPECT_LT(e.peak_bytes, estimate(w, zero(Sharding::Zero3, 16)).peak_bytes);
}

TEST(Estimate, OfACountOnlyIsALowerBound) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  const Estimate known = estimate(resolved(spec), one_gpu());
  spec.model = {};
  spec.model.parameters = 8.03e9;
  const Estimate bound = estimate(resolved(spec), one_gpu());
  EXPECT_TRUE(bound.lower_bound_only);
  EXPECT_LE(bound.peak_bytes, known.peak_bytes);
  EXPECT_EQ(bound.confidence.level, api::ConfidenceLevel::LowerBound);
}

TEST(Estimate, NamesTheThreeFiguresApart) {
  const Estimate e = estimate(resolved(spec_of("llama-3.1-8b")), zero(Sharding::Zero3, 8));
  const PhaseUse& use = e.peak_use();
  EXPECT_NEAR(static_cast<double>(e.peak_bytes - e.allocated_bytes),
              use[Term::Context] + use[Term::Communicators] + use[Term::Fragmentation], 2);
  EXPECT_EQ(use[Term::Communicators], 1.2 * 1024 * 1024 * 1024);
}

TEST(Terms, HaveDistinctKeysAndNames) {
  std::set<std::string_view> keys;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kTerms; ++i) {
    keys.insert(term_key(static_cast<Term>(i)));
    names.insert(term_name(static_cast<Term>(i)));
  }
  EXPECT_EQ(keys.size(), kTerms);
  EXPECT_EQ(names.size(), kTerms);
}

}  // namespace
}  // namespace loadline::estimator
