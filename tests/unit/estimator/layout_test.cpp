#include "estimator/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/advice.h"
#include "workload_builder.h"

namespace loadline::estimator {
namespace {

using ::testing::HasSubstr;

Workload chosen(const char* preset, api::Framework framework = api::Framework::Generic) {
  api::TrainingJobSpec spec = spec_of(preset);
  spec.training.framework = framework;
  spec.training.precision = api::Precision::Bf16Mixed;
  spec.training.microBatchSize.reset();
  spec.training.globalBatchSize = 64;
  return resolved(spec);
}

TEST(SensibleLayouts, KeepEveryRuleOfTheirDegrees) {
  const Workload w = chosen("llama-3.1-70b");
  const auto layouts = sensible_layouts(w, 64, 8, {});
  ASSERT_FALSE(layouts.empty());
  for (const Layout& l : layouts) {
    EXPECT_EQ(l.tensor * l.pipeline * l.context * l.data, 64) << layout_text(l);
    EXPECT_LE(l.tensor, 8) << layout_text(l);
    EXPECT_EQ(w.model.kv_heads % l.tensor, 0) << layout_text(l);
    EXPECT_EQ(w.model.layers % l.pipeline, 0) << layout_text(l);
    EXPECT_EQ(*w.global_batch % (l.micro_batch * l.data), 0) << layout_text(l);
    EXPECT_EQ(accumulation_steps(w, l) * l.micro_batch * l.data, *w.global_batch) << layout_text(l);
  }
}

TEST(SensibleLayouts, KeepWhatTheUserFixed) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-70b");
  spec.training.framework = api::Framework::Megatron;
  spec.training.globalBatchSize = 64;
  spec.training.activationCheckpointing = Recompute::Selective;
  spec.parallelism.emplace();
  spec.parallelism->tensor = 8;
  spec.parallelism->pipeline = 2;
  spec.parallelism->sharding = Sharding::Zero1;
  const auto layouts = sensible_layouts(resolved(spec), 32, 8, constraints_from(spec));
  ASSERT_EQ(layouts.size(), 1U);
  EXPECT_EQ(layout_text(layouts[0]), "TP 8 x PP 2 x DP 2, ZeRO-1, micro-batch 1, selective recompute");
}

TEST(SensibleLayouts, PutPlainDataParallelismFirst) {
  const auto layouts = sensible_layouts(chosen("llama-3.2-1b"), 8, 8, {});
  ASSERT_FALSE(layouts.empty());
  EXPECT_EQ(layouts[0].data, 8);
  EXPECT_EQ(layouts[0].sharding, Sharding::None);
  EXPECT_EQ(layouts[0].recompute, Recompute::None);
}

TEST(SensibleLayouts, OfAFrameworkWithoutModelParallelismSplitOnlyTheData) {
  for (const Layout& l : sensible_layouts(chosen("llama-3.1-8b", api::Framework::HuggingFace), 8, 8, {})) {
    EXPECT_EQ(l.data, 8) << layout_text(l);
    EXPECT_TRUE(l.sharding == Sharding::None || l.sharding == Sharding::Zero3) << layout_text(l);
  }
}

TEST(SensibleLayouts, FillTheFewestEqualNodes) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.globalBatchSize = 48;
  const auto layouts = sensible_layouts(resolved(spec), 12, 8, {});
  ASSERT_FALSE(layouts.empty());
  for (const Layout& l : layouts) {
    EXPECT_EQ(l.gpus_per_node, 6) << layout_text(l);
    EXPECT_EQ(l.nodes(), 2) << layout_text(l);
    EXPECT_LE(l.tensor, 6) << layout_text(l);
  }
}

TEST(SensibleLayouts, LeaveFewerBatchesWhereAnExpertGroupSharesOne) {
  LayoutConstraints c;
  c.expert = 4;
  const auto shared = sensible_layouts(chosen("mixtral-8x7b", api::Framework::HuggingFace), 16, 8, c);
  ASSERT_FALSE(shared.empty());
  for (const Layout& l : shared) EXPECT_EQ(l.data, 4) << layout_text(l);
  const auto own = sensible_layouts(chosen("mixtral-8x7b", api::Framework::DeepSpeed), 16, 8, c);
  ASSERT_FALSE(own.empty());
  for (const Layout& l : own) EXPECT_EQ(l.data, 16) << layout_text(l);
}

TEST(WhyNoLayout, NamesWhatAnExpertGroupThatSharesItsBatchNeeds) {
  const Workload w = chosen("mixtral-8x7b", api::Framework::HuggingFace);
  LayoutConstraints c;
  c.expert = 8;
  EXPECT_THAT(why_no_layout(w, 12, 8, c), HasSubstr("expert 8 must divide the 12 GPUs"));
  c.tensor = 2;
  EXPECT_THAT(why_no_layout(w, 16, 8, c), HasSubstr("expert 8 and tensor 2 are the same ranks"));
  EXPECT_TRUE(sensible_layouts(w, 16, 8, c).empty());
}

TEST(WhyNoLayout, NamesTheRuleThatIsBroken) {
  const Workload w = chosen("llama-3.1-8b");
  LayoutConstraints c;
  c.tensor = 16;
  EXPECT_THAT(why_no_layout(w, 16, 8, c), HasSubstr("does not stay within a node of 8"));
  c.tensor = 3;
  EXPECT_THAT(why_no_layout(w, 24, 8, c), HasSubstr("must divide heads (32), KV heads (8)"));
  c = {};
  c.pipeline = 5;
  EXPECT_THAT(why_no_layout(w, 40, 8, c), HasSubstr("must divide the 32 layers"));
  c = {};
  c.expert = 4;
  EXPECT_THAT(why_no_layout(w, 8, 8, c), HasSubstr("experts (0)"));
  EXPECT_TRUE(sensible_layouts(w, 8, 8, c).empty());
}

TEST(WhyNoLayout, NamesABatchThatDoesNotComeOutWhole) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.globalBatchSize = 12;
  const Workload w = resolved(spec);
  EXPECT_TRUE(sensible_layouts(w, 8, 8, {}).empty());
  EXPECT_THAT(why_no_layout(w, 8, 8, {}), HasSubstr("global batch of 12"));
}

TEST(WhyNoLayout, NamesTheFieldAndItsValue) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.globalBatchSize = 64;
  const Workload w = resolved(spec);
  LayoutConstraints c;
  c.pipeline = 5;
  EXPECT_EQ(no_layout(w, 40, 8, c).field, "spec.parallelism.pipeline");
  EXPECT_EQ(no_layout(w, 40, 8, c).value, "5");
  EXPECT_EQ(no_layout(w, 40, 8, {}).field, "spec.training.globalBatchSize");
  EXPECT_EQ(no_layout(w, 128, 8, {}).field, "spec.gpus");
  EXPECT_EQ(no_layout(w, 128, 8, {}).detail,
            "the global batch of 64 sequences is enough for 64 data-parallel ranks, and 128 GPUs make 128");
}

TEST(LayoutText, ReadsAsAnEngineerWouldSayIt) {
  EXPECT_EQ(layout_text(zero(Sharding::Zero3, 8, 2)), "ZeRO-3 over 8, micro-batch 2, full recompute");
  EXPECT_EQ(layout_text(one_gpu(1, Recompute::None)), "one GPU, micro-batch 1");
  EXPECT_EQ(layout_text(zero(Sharding::None, 8)), "DDP over 8, micro-batch 1, full recompute");
  EXPECT_EQ(layout_short(zero(Sharding::Zero3, 8)), "ZeRO-3");
}

Capacity cards(double usable_gib, std::int64_t per_node = 8) {
  Capacity c;
  c.usable_bytes = static_cast<std::int64_t>(usable_gib * 1024 * 1024 * 1024);
  c.gpus_per_node = per_node;
  return c;
}

TEST(BestLayout, IsTheFirstThatFitsElseTheLeast) {
  const Workload w = chosen("llama-3.1-8b");
  const auto fits = best_layout(w, 8, {}, cards(78));
  ASSERT_TRUE(fits);
  EXPECT_LE(fits->estimate.peak_bytes, cards(78).usable_bytes);
  const auto least = best_layout(w, 8, {}, cards(10));
  ASSERT_TRUE(least);
  for (const Layout& l : sensible_layouts(w, 8, 8, {})) {
    EXPECT_GE(estimate(w, l).peak_bytes, least->estimate.peak_bytes) << layout_text(l);
  }
}

TEST(Advice, ForStatesThatDoNotFitOffersMoreGpusAdaptersAndOffloadWithTheirFigures) {
  const Workload w = chosen("llama-3.1-70b");
  const Capacity c = cards(78);
  const auto asked = best_layout(w, 8, {}, c);
  ASSERT_GT(asked->estimate.peak_bytes, c.usable_bytes);
  const auto changes = advise(w, asked->layout, {}, c);
  ASSERT_EQ(changes.size(), 3U);
  for (const Change& change : changes) EXPECT_LE(change.peak_bytes, c.usable_bytes) << change.text;
  EXPECT_THAT(changes[0].text, HasSubstr("GPUs ("));
  EXPECT_THAT(changes[1].text, HasSubstr("LoRA rank 16 on 8 ("));
  EXPECT_THAT(changes[2].text, HasSubstr("optimizer offload on 8 ("));
  EXPECT_THAT(changes[2].text, HasSubstr("GiB per node"));
  EXPECT_THAT(advice_text(w, asked->layout, {}, c), ::testing::StartsWith("Would fit: "));
}

// A user adds GPUs to fit a longer sequence; each data-parallel rank still holds it whole.
TEST(Advice, ForALongSequenceNeverOffersMoreDataParallelGpus) {
  api::TrainingJobSpec spec = spec_of("llama-3.2-1b");
  spec.training.sequenceLength = 50'000;
  spec.training.activationCheckpointing = Recompute::None;
  const Workload w = resolved(spec);
  const Capacity c = cards(44);
  const auto asked = best_layout(w, 1, {}, c);
  ASSERT_GT(asked->estimate.peak_bytes, c.usable_bytes);
  for (const Change& change : advise(w, asked->layout, {}, c)) {
    EXPECT_EQ(change.text.find(" GPUs ("), std::string::npos) << change.text;
    const bool splits_the_sequence = change.layout.tensor * change.layout.context > 1;
    EXPECT_TRUE(change.layout.gpus == 1 || splits_the_sequence) << change.text;
  }
  EXPECT_THAT(advice_text(w, asked->layout, {}, c), HasSubstr("Would fit: "));
}

TEST(Advice, OffersRecomputeAndSmallerMicroBatchesWhenTheUserFixedThem) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.method = api::Method::Lora;
  spec.training.microBatchSize = 4;
  spec.training.activationCheckpointing = Recompute::None;
  spec.training.loss = api::Loss::Fused;
  const Workload w = resolved(spec);
  const auto asked = best_layout(w, 1, {}, cards(44, 1));
  const auto changes = advise(w, asked->layout, {}, cards(44, 1));
  ASSERT_FALSE(changes.empty());
  EXPECT_THAT(changes[0].text, HasSubstr("full recompute ("));
}

TEST(Advice, WhenNothingHelpsNamesTheLargestTerm) {
  const Workload w = chosen("llama-3.1-405b");
  LayoutConstraints c;
  const auto asked = best_layout(w, 1, c, cards(1, 1));
  Capacity small = cards(1, 1);
  small.max_gpus = 1;
  EXPECT_THAT(advice_text(w, asked->layout, c, small), HasSubstr("the largest term is Optimizer states"));
}

TEST(Layouts, KeepChunksAndGroupsThatTheUserFixed) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.framework = api::Framework::Megatron;
  spec.training.globalBatchSize = 64;
  LayoutConstraints c;
  c.pipeline = 4;
  c.virtual_stages = 2;
  c.replicate = 2;
  const std::vector<Layout> layouts = sensible_layouts(resolved(spec), 16, 8, c);
  ASSERT_FALSE(layouts.empty());
  for (const Layout& l : layouts) {
    EXPECT_EQ(l.virtual_stages, 2);
    EXPECT_EQ(l.replicate, 2);
  }
  EXPECT_NE(layout_text(layouts.front()).find("PP 4 (2 chunks)"), std::string::npos);
  c.virtual_stages = 3;
  EXPECT_TRUE(sensible_layouts(resolved(spec), 16, 8, c).empty());
  EXPECT_EQ(why_no_layout(resolved(spec), 16, 8, c), "virtualStages 3 must divide the 8 layers of a stage");
  c.virtual_stages.reset();
  c.replicate = 3;
  EXPECT_EQ(why_no_layout(resolved(spec), 16, 8, c), "replicate 3 must divide the 4 data-parallel ranks");
}

TEST(Layouts, DoNotAccumulateWhenTheOptimizerRunsInTheBackwardPass) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.optimizerInBackward = true;
  spec.training.globalBatchSize = 64;
  EXPECT_TRUE(sensible_layouts(resolved(spec), 8, 8, {}).empty());
  EXPECT_NE(why_no_layout(resolved(spec), 8, 8, {}).find("one micro-batch per step"), std::string::npos);
}

}  // namespace
}  // namespace loadline::estimator
