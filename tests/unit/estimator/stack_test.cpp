// Models that are more than one decoder: encoders, towers, recurrent layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/estimate.h"
#include "estimator/explain.h"
#include "workload_builder.h"

namespace loadline::estimator {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

Workload workload(const char* preset, std::int64_t sequence, api::Method method = api::Method::Full) {
  api::TrainingJobSpec spec = spec_of(preset);
  spec.training.sequenceLength = sequence;
  spec.training.method = method;
  return resolved(spec);
}

const PhaseUse& loss_phase(const Estimate& e) {
  EXPECT_EQ(e.phases[0].phase, Phase::Loss);
  return e.phases[0];
}

TEST(FurtherStack, KeepsTheInputsOfItsOwnLayersOnItsOwnTokens) {
  const Estimate e = estimate(workload("whisper-large-v3", 448), one_gpu(4));
  // Full recompute: 4 pieces of sound of 1500 positions, 32 layers, hidden 1280 in bf16.
  EXPECT_EQ(loss_phase(e)[Term::StackActivations], 4.0 * 1500 * 32 * 1280 * 2);
  EXPECT_EQ(loss_phase(e)[Term::KeptActivations], 4.0 * 448 * 32 * 1280 * 2);
}

TEST(FurtherStack, OfAnEncoderReadsAsManyTokensAsTheDecoder) {
  const Workload w = workload("t5-v1_1-xl", 512);
  EXPECT_EQ(loss_phase(estimate(w, one_gpu()))[Term::StackActivations], 512.0 * 24 * 2048 * 2);
  EXPECT_THAT(assumptions(w, one_gpu()), Contains(HasSubstr("reads as many tokens as the decoder")));
}

TEST(FurtherStack, KeepsTheKeysAndValuesOfCrossAttentionForEveryDecoderLayer) {
  const Workload w = workload("t5-v1_1-xl", 512);
  const Layout none = one_gpu(1, Recompute::None);
  Workload apart = w;
  apart.model.cross_attention = false;
  const double crossed =
      loss_phase(estimate(w, none))[Term::StackActivations] - loss_phase(estimate(apart, none))[Term::StackActivations];
  EXPECT_EQ(crossed, 512.0 * 24 * 2 * 2048 * 2);
}

TEST(FurtherStack, OfATowerIsFrozenBesideAdaptersAndKeepsNothing) {
  const Workload w = workload("qwen2.5-vl-7b", 2048, api::Method::Lora);
  EXPECT_EQ(loss_phase(estimate(w, one_gpu()))[Term::StackActivations], 0);
  EXPECT_THAT(assumptions(w, one_gpu()), Contains(HasSubstr("is frozen and keeps nothing")));
  const Workload full = workload("qwen2.5-vl-7b", 2048);
  EXPECT_GT(loss_phase(estimate(full, one_gpu()))[Term::StackActivations], 0);
  EXPECT_THAT(assumptions(full, one_gpu()), Contains(HasSubstr("one image of 4096 positions")));
}

TEST(FurtherStack, CountsInTheWeightsOfEveryRank) {
  const Workload w = workload("qwen2.5-vl-7b", 2048);
  EXPECT_EQ(loss_phase(estimate(w, one_gpu()))[Term::Weights], 2 * w.parameters.total);
}

TEST(FurtherStack, IsTheLayerComputedAnewWhereItIsTheLargest) {
  const Workload w = workload("whisper-large-v3", 448);
  const Estimate e = estimate(w, one_gpu(64));
  EXPECT_THAT(explain(w, one_gpu(64), e), ::testing::AnyOf(Contains(HasSubstr("of the audio tower")),
                                                           Contains(HasSubstr("at the loss, on every rank"))));
  // 1500 positions of the encoder against 448 tokens of the decoder, layers of the same width.
  Workload without = w;
  without.model.stacks.clear();
  without.model.cross_attention = false;
  const auto backward = [](const Estimate& of) { return of.phases[1][Term::RecomputedLayer]; };
  EXPECT_GT(backward(e), 2 * backward(estimate(without, one_gpu(64))));
}

TEST(FurtherStack, IsNotCutIntoPipelineStages) {
  const Workload w = workload("qwen2.5-vl-7b", 2048);
  LayoutConstraints constraints;
  constraints.pipeline = 2;
  EXPECT_TRUE(sensible_layouts(w, 8, 8, constraints).empty());
  EXPECT_THAT(why_no_layout(w, 8, 8, constraints), HasSubstr("not supported yet"));
  for (const Layout& l : sensible_layouts(w, 8, 8, {})) EXPECT_EQ(l.pipeline, 1);
}

TEST(Encoder, WithoutALanguageHeadHasNoLogits) {
  EXPECT_EQ(loss_phase(estimate(workload("bert-large", 512), one_gpu()))[Term::Logits], 0);
  EXPECT_EQ(loss_phase(estimate(workload("vit-large", 197), one_gpu()))[Term::Logits], 0);
}

TEST(Encoder, OfImagesHasAsManyTokensAsPatchesUnlessToldOtherwise) {
  api::TrainingJobSpec spec = spec_of("vit-base");
  spec.training.sequenceLength.reset();
  EXPECT_EQ(resolved(spec).sequence, 197);
  spec.training.sequenceLength = 577;
  EXPECT_EQ(resolved(spec).sequence, 577);
}

TEST(RecurrentLayers, HaveNoAttentionScores) {
  api::TrainingJobSpec spec = spec_of("mamba-2.8b");
  spec.training.attention = api::Attention::Eager;
  for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
    const Estimate e = estimate(resolved(spec), one_gpu(1, recompute));
    for (std::size_t i = 0; i < e.phase_count; ++i) EXPECT_EQ(e.phases[i][Term::AttentionScores], 0);
  }
}

TEST(RecurrentLayers, OfAHybridLeaveScoresToItsFewAttentionLayers) {
  api::TrainingJobSpec spec = spec_of("jamba-v0.1");
  spec.training.attention = api::Attention::Eager;
  const Workload w = resolved(spec);
  const double scores = loss_phase(estimate(w, one_gpu(1, Recompute::None)))[Term::AttentionScores];
  EXPECT_EQ(scores, w.recipe.score_bytes * 4096 * 4096 * 32 * 4);
}

TEST(RecurrentLayers, KeepTheirProjectionsAndOutputs) {
  // Mamba-2.8B, one layer and token: 2e projected, e convolved, e + rank + 2N for the step and states, 2e of output
  // before and after the gate; beside them the stream and its norm.
  const Workload w = workload("mamba-2.8b", 2048);
  Workload narrow = w;
  narrow.model.recurrence.inner = 0;
  const Layout none = one_gpu(1, Recompute::None);
  const double kept =
      loss_phase(estimate(w, none))[Term::KeptActivations] - loss_phase(estimate(narrow, none))[Term::KeptActivations];
  EXPECT_NEAR(kept, 2048.0 * 64 * 6 * 5120 * 2, 1);
}

TEST(Confidence, IsOnlyApproximateForKindsThatWereNotMeasured) {
  for (const char* preset : {"whisper-large-v3", "t5-small", "bert-base", "mamba-130m", "clip-vit-base-patch32"}) {
    const Estimate e = estimate(workload(preset, 64), one_gpu());
    EXPECT_EQ(e.confidence.level, api::ConfidenceLevel::Approximate) << preset;
  }
}

}  // namespace
}  // namespace loadline::estimator
