// What must hold for every model, workload and layout, not only for those we thought of.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "estimator/advice.h"
#include "estimator/checkpoint_size.h"
#include "estimator/estimate.h"
#include "estimator/explain.h"
#include "workload_builder.h"

namespace loadline::estimator {
namespace {

using api::Framework;
using api::Method;
using api::Optimizer;
using api::Precision;

template <class E>
E any() {
  std::vector<E> values;
  for (const auto& [value, name] : api::EnumNames<E>::table) values.push_back(value);
  return *rc::gen::elementOf(values);
}

api::TrainingJobSpec any_spec() {
  static const std::vector<std::string> kPresets{"llama-3.1-8b", "llama-3.2-1b",     "mistral-7b-v0.1", "qwen2.5-7b",
                                                 "qwen3-4b",     "gemma-2-9b",       "gpt2-xl",         "pythia-6.9b",
                                                 "mixtral-8x7b", "deepseek-v2-lite", "llama-3.1-70b",   "t5-v1_1-base",
                                                 "qwen2-vl-2b",  "jamba-v0.1",       "mamba-130m"};
  api::TrainingJobSpec spec;
  spec.model.preset = *rc::gen::elementOf(kPresets);
  spec.training.framework = any<Framework>();
  spec.training.method = *rc::gen::element(Method::Full, Method::Lora, Method::QLora);
  spec.training.precision = spec.training.method == Method::QLora ? Precision::Bf16Mixed : any<Precision>();
  spec.training.optimizer = any<Optimizer>();
  spec.training.attention = any<api::Attention>();
  spec.training.loss = any<api::Loss>();
  spec.training.sequenceLength = 128 * *rc::gen::inRange<std::int64_t>(1, 9);
  return spec;
}

Layout any_layout() {
  Layout l;
  l.tensor = *rc::gen::element<std::int64_t>(1, 2, 4);
  l.pipeline = *rc::gen::element<std::int64_t>(1, 2);
  l.data = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  l.gpus = l.tensor * l.pipeline * l.data;
  l.sharding = any<Sharding>();
  l.recompute = any<Recompute>();
  l.micro_batch = *rc::gen::inRange<std::int64_t>(1, 9);
  return l;
}

double peak(const Workload& w, const Layout& l) { return estimate(w, l).peak_use().on_card(); }

RC_GTEST_PROP(Memory, NeverFallsWhenTheMicroBatchGrows, ()) {
  const Workload w = resolved(any_spec());
  Layout l = any_layout();
  const double before = peak(w, l);
  ++l.micro_batch;
  RC_ASSERT(peak(w, l) >= before);
}

RC_GTEST_PROP(Memory, NeverFallsWhenTheSequenceGrows, ()) {
  Workload w = resolved(any_spec());
  const Layout l = any_layout();
  const double before = peak(w, l);
  w.sequence += 128;
  RC_ASSERT(peak(w, l) >= before);
}

RC_GTEST_PROP(Memory, NeverFallsWhenTheModelGetsMoreLayers, ()) {
  api::TrainingJobSpec spec = any_spec();
  const Workload w = resolved(spec);
  const Layout l = any_layout();
  // A layer added to a recurrent model has attention or nothing: where gathered layers are counted as the average of
  // all, it lowers that.
  RC_PRE(w.model.attention_free_layers == 0);
  Workload deeper = w;
  // Twice as many layers of every kind, so that the average layer stays what it is.
  const auto added_layers = static_cast<double>(deeper.model.layers);
  for (std::int64_t* layers : {&deeper.model.layers, &deeper.model.recurrence.layers,
                               &deeper.model.attention_free_layers, &deeper.model.mlp_free_layers}) {
    *layers *= 2;
  }
  deeper.parameters = count_parameters(deeper.model);
  if (w.method != Method::Full) {
    deeper = with_lora(deeper, w.lora.rank, w.method == Method::QLora);
  } else {
    const double added = deeper.parameters.total - w.parameters.total;
    deeper.trained += added;
    deeper.trained_vectors += added_layers * w.parameters.layer.norms;
  }
  RC_ASSERT(peak(deeper, l) >= peak(w, l) * (1 - 1e-12));
}

RC_GTEST_PROP(Memory, NeverFallsWhenTheRankGrows, ()) {
  api::TrainingJobSpec spec = any_spec();
  spec.training.method = Method::Lora;
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(1, 256);
  spec.training.lora = api::LoraSpec{rank, {}};
  const Layout l = any_layout();
  const double before = peak(resolved(spec), l);
  spec.training.lora->rank = rank + 8;
  RC_ASSERT(peak(resolved(spec), l) >= before);
}

double stated_buffers(const PhaseUse& use) {
  return use[Term::GatherBuffers] + use[Term::ReduceBuffers] + use[Term::HeldGradients] + use[Term::Communicators] +
         use[Term::Fragmentation];
}

/// What is left of a phase without communication buffers and the reserve they bring.
double without_buffers(const Estimate& e) {
  double most = 0;
  for (std::size_t i = 0; i < e.phase_count; ++i)
    most = std::max(most, e.phases[i].on_card() - stated_buffers(e.phases[i]));
  return most;
}

RC_GTEST_PROP(Memory, NeverGrowsWithMoreShardsExceptForStatedBuffers, ()) {
  const Workload w = resolved(any_spec());
  Layout l = any_layout();
  const double before = without_buffers(estimate(w, l));
  l.data *= 2;
  l.gpus *= 2;
  RC_ASSERT(without_buffers(estimate(w, l)) <= before * (1 + 1e-12));
}

RC_GTEST_PROP(Memory, NeverGrowsWithTheZeroStageExceptForStatedBuffers, ()) {
  const Workload w = resolved(any_spec());
  Layout l = any_layout();
  l.sharding = Sharding::None;
  double before = without_buffers(estimate(w, l));
  for (const Sharding s : {Sharding::Zero1, Sharding::Zero2, Sharding::Zero3}) {
    l.sharding = s;
    const double now = without_buffers(estimate(w, l));
    RC_ASSERT(now <= before * (1 + 1e-12));
    before = now;
  }
}

RC_GTEST_PROP(Memory, OfRecomputeIsNeverMoreThanOfKeepingEverythingAndOneLayerTwice, ()) {
  const Workload w = resolved(any_spec());
  Layout l = any_layout();
  l.pipeline = 1;
  l.recompute = Recompute::None;
  const double all = without_buffers(estimate(w, l));
  l.recompute = Recompute::Full;
  const Estimate e = estimate(w, l);
  double layer = 0;
  for (std::size_t i = 0; i < e.phase_count; ++i) layer = std::max(layer, e.phases[i][Term::RecomputedLayer]);
  RC_ASSERT(without_buffers(e) <= (all + layer) * (1 + 1e-12));
}

RC_GTEST_PROP(LargeModels, NeedNoMoreWithLoraThanInFullAndNoMoreWithQloraThanWithLora, ()) {
  api::TrainingJobSpec spec = any_spec();
  spec.model.preset = *rc::gen::element<std::string>("llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "qwen2.5-72b");
  spec.training.method = Method::Full;
  spec.training.precision = *rc::gen::element(Precision::Bf16, Precision::Bf16Mixed);
  const Workload full = resolved(spec);
  Layout l = any_layout();
  l.recompute = Recompute::Full;
  l.micro_batch = 1;
  const double lora = peak(with_lora(full, 16), l);
  RC_ASSERT(lora <= peak(full, l));
  RC_ASSERT(peak(with_lora(full, 16, true), l) <= lora);
}

RC_GTEST_PROP(Lora, OfRankZeroEqualsTheFrozenModel, ()) {
  api::TrainingJobSpec spec = any_spec();
  spec.training.method = Method::Lora;
  const Workload w = with_lora(resolved(spec), 0);
  RC_ASSERT(w.trained == 0);
  Layout l = any_layout();
  l.tensor = l.pipeline = l.data = l.gpus = 1;
  const Estimate e = estimate(w, l);
  for (std::size_t i = 0; i < e.phase_count; ++i) {
    const PhaseUse& use = e.phases[i];
    const double compute = w.precision == Precision::Fp32 ? 4 : 2;
    RC_ASSERT(use[Term::Weights] == compute * w.parameters.total);
    RC_ASSERT(use[Term::Gradients] + use[Term::Master] + use[Term::OptimizerStates] == 0);
    RC_ASSERT(use[Term::OptimizerTemporary] + use[Term::KeptActivations] + use[Term::RecomputedLayer] == 0);
  }
}

/// Any number the schema lets through, most of them absurd.
std::int64_t absurd() {
  return *rc::gen::element<std::int64_t>(1, 7, 4096, 1'000'000, 1'000'000'000'000,
                                         std::numeric_limits<std::int64_t>::max());
}

RC_GTEST_PROP(AbsurdInput, NeitherOverflowsNorTurnsSmallOrNegative, ()) {
  api::TrainingJobSpec spec = any_spec();
  spec.model = {};
  if (*rc::gen::arbitrary<bool>()) {
    spec.model.parameters = *rc::gen::element(1.0, 8e9, 1e19, 1e300);
  } else {
    api::ArchitectureSpec& a = spec.model.architecture.emplace();
    a.layers = absurd();
    a.hidden = absurd();
    a.heads = absurd();
    a.kvHeads = a.heads;
    a.ffn = absurd();
    a.vocab = absurd();
    a.headDim = absurd();
    if (*rc::gen::arbitrary<bool>()) {
      a.experts = absurd();
      a.topK = absurd();
      a.sharedExperts = absurd();
    }
  }
  spec.training.sequenceLength = absurd();
  spec.training.microBatchSize = absurd();
  spec.training.globalBatchSize = absurd();
  if (spec.training.method != Method::Full) spec.training.lora = api::LoraSpec{absurd(), {}};
  const auto workload = workload_from(spec);
  if (!workload) {
    RC_ASSERT(!workload.error().fields.empty());
    return;
  }
  const Layout l = any_layout();
  const Estimate e = estimate(*workload, l);
  RC_ASSERT(e.peak_bytes > 0);
  RC_ASSERT(e.allocated_bytes >= 0);
  RC_ASSERT(e.host_bytes_per_node >= 0);
  for (const double bytes : e.peak_use().bytes) RC_ASSERT(std::isfinite(bytes) && bytes >= 0);
  RC_ASSERT(!explain(*workload, l, e).empty());
  RC_ASSERT(summary(*workload, l, e).size() < 2048U);
  RC_ASSERT(checkpoint_volume_bytes(checkpoint_size(*workload), absurd()) > 0);
}

TEST(AbsurdInput, TenToTheNineteenParametersSaturateInsteadOfWrapping) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.model = {};
  spec.model.parameters = 1e19;
  const Workload w = resolved(spec);
  const Estimate e = estimate(w, one_gpu());
  EXPECT_EQ(e.peak_bytes, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(checkpoint_size(w).total_bytes, std::numeric_limits<std::int64_t>::max());
  EXPECT_NE(summary(w, one_gpu(), e).find("more than 8 EiB"), std::string::npos);
}

}  // namespace
}  // namespace loadline::estimator
