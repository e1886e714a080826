// Specs and workloads that the estimator's tests start from.
#pragma once

#include <gtest/gtest.h>

#include "api/training_job.h"
#include "estimator/estimate.h"
#include "estimator/workload.h"

namespace loadline::estimator {

/// A full bf16 run of a preset, sequence 4096, micro-batch 1, framework huggingface.
inline api::TrainingJobSpec spec_of(const char* preset) {
  api::TrainingJobSpec spec;
  spec.model.preset = preset;
  spec.training.framework = api::Framework::HuggingFace;
  spec.training.precision = api::Precision::Bf16;
  spec.training.sequenceLength = 4096;
  spec.training.microBatchSize = 1;
  return spec;
}

/// On one GPU its backward pass ends fuller than it begins: gradients outweigh activations, and nothing else is there.
inline api::TrainingJobSpec spec_full_at_the_end() {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.framework = api::Framework::TorchTune;
  spec.training.optimizer = api::Optimizer::Sgd;
  spec.training.loss = api::Loss::Fused;
  spec.training.globalBatchSize = 1;
  return spec;
}

inline Workload resolved(const api::TrainingJobSpec& spec) {
  auto workload = workload_from(spec);
  if (!workload) {
    for (const FieldError& e : workload.error().fields) ADD_FAILURE() << to_string(e);
    return {};
  }
  return *workload;
}

/// One GPU, full recompute.
inline Layout one_gpu(std::int64_t micro_batch = 1, Recompute recompute = Recompute::Full) {
  Layout l;
  l.micro_batch = micro_batch;
  l.recompute = recompute;
  return l;
}

/// ZeRO stage over `gpus` in nodes of 8, full recompute.
inline Layout zero(Sharding sharding, std::int64_t gpus, std::int64_t micro_batch = 1) {
  Layout l = one_gpu(micro_batch);
  l.gpus = l.data = gpus;
  l.sharding = sharding;
  return l;
}

inline double as_gib(double bytes) { return bytes / (1024.0 * 1024 * 1024); }

inline double allocated_gib(const Estimate& e) { return as_gib(static_cast<double>(e.allocated_bytes)); }

inline PhaseUse in_phase(const Estimate& e, Phase phase, Stage stage = Stage::First) {
  for (std::size_t i = 0; i < e.phase_count; ++i) {
    if (e.phases[i].phase == phase && e.phases[i].stage == stage) return e.phases[i];
  }
  ADD_FAILURE() << "no such phase";
  return {};
}

}  // namespace loadline::estimator
