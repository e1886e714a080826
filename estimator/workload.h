// What is to be trained, resolved: the user's spec with every name looked up and every
// default that sizing needs filled in. How it is laid over GPUs is the Layout's business.
//
// Thread-safety: plain values; workload_from is pure.
// Ownership: a Workload holds copies of its table rows and outlives the tables.
// Errors: all of them at once, with spec.* paths and values as typed. What the API accepts
// but sizing cannot do yet is NotSupported with "not supported yet: ...", never ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "estimator/layout.h"
#include "estimator/model.h"
#include "estimator/tables.h"

namespace loadline::api {
struct TrainingJobSpec;
}

namespace loadline::estimator {

using api::Attention;
using api::Method;
using api::Objective;

/// Low-rank adapters.
struct Lora {
  std::int64_t rank = 0;
  std::vector<std::string> targets;  ///< matrix names; empty: every matrix of the layers
  bool train_embeddings = false;     ///< embedding and head are trained whole beside the adapters
  bool magnitudes = false;           ///< DoRA: a trained magnitude per output of an adapted matrix
};

/// Percent within which nine of ten measured runs of the workload's kind lie, by how it is laid out.
struct ErrorBands {
  double one_gpu = 0;
  double sharded = 0;         ///< data parallel only
  double model_parallel = 0;  ///< tensor, pipeline or context parallel
};

struct Workload {
  Model model;
  ParameterCount parameters;
  Method method = Method::Full;
  Lora lora;
  std::int64_t frozen_layers = 0;  ///< method freeze: leading layers that keep no gradient
  Objective objective = Objective::Pretrain;
  Precision precision = Precision::Bf16Mixed;
  Attention attention = Attention::Flash;
  Loss loss = Loss::Standard;
  std::int64_t sequence = 0;                 ///< tokens per sequence
  std::optional<std::int64_t> micro_batch;   ///< sequences per GPU and pass; absent: chosen
  std::optional<std::int64_t> global_batch;  ///< sequences per optimizer step; absent: micro x data
  std::optional<Recompute> recompute;        ///< absent: chosen
  double total_tokens = 0;                   ///< to train on; 0 unknown
  bool compile = false;                      ///< the layers run through a compiler
  std::int64_t recompute_every = 1;          ///< full recompute of only every n-th layer
  bool optimizer_in_backward = false;        ///< gradients are used up layer by layer
  bool kbit_upcast = false;                  ///< what is not quantised, and the stream between layers, is fp32
  bool expandable_segments = true;           ///< the allocator grows its segments, so that its cache does not splinter
  Quantization quantization = Quantization::Nf4;  ///< of method qlora
  double quantised_bytes = 0;                     ///< per 4-bit base weight, scales included
  Recipe recipe;                                  ///< of the framework, with what the job sets itself
  OptimizerRow optimizer;

  ErrorBands bands;

  double trained = 0;               ///< parameters with gradients (adapters included)
  double trained_vectors = 0;       ///< of those, embeddings, head and norms
  double adapters = 0;              ///< LoRA parameters
  double expert_adapters = 0;       ///< of these, on routed experts
  double adapted_inputs = 0;        ///< input widths of the adapted matrices that a token passes in a layer, summed
  double reference_copies = 0;      ///< frozen copies of the model beside the trained one (DPO)
  double sequences_per_sample = 1;  ///< 2 for DPO pairs
};

/// Resolves a spec. Uses the built-in tables unless told otherwise.
[[nodiscard]] Result<Workload> workload_from(const api::TrainingJobSpec& spec);
[[nodiscard]] Result<Workload> workload_from(const api::TrainingJobSpec& spec, const Tables& tables);

/// What spec.parallelism fixes; absent fields are chosen.
[[nodiscard]] LayoutConstraints constraints_from(const api::TrainingJobSpec& spec);

/// "full", "LoRA rank 16", "QLoRA rank 16", "the last 8 layers".
[[nodiscard]] std::string method_text(const Workload& workload);

/// The same workload trained with LoRA instead (for advice); keeps everything else that goes with adapters. Its
/// error bands are those of the built-in tables.
[[nodiscard]] Workload with_lora(const Workload& workload, std::int64_t rank, bool quantised = false);

}  // namespace loadline::estimator
