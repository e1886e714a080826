// The factors that an estimate multiplies, for one pipeline stage of one layout. The same
// factors are printed by the explanation, so that a reader multiplies what the code did.
//
// Thread-safety: plain values, pure functions, no allocation.
#pragma once

#include "estimator/layout.h"
#include "estimator/workload.h"

namespace loadline::estimator {

struct Quantities {
  StateBytes bytes;  ///< of the recipe at the workload's precision

  double tokens = 0;       ///< of one micro-batch on one rank
  double layers = 0;       ///< on this stage
  double kept_layers = 0;  ///< of these, with a backward pass: they keep activations
  double in_flight = 1;    ///< micro-batches whose activations are alive at once
  double tensor = 1;
  double hidden_split = 1;  ///< tensor with sequence parallelism, else 1
  bool has_embedding = true;
  bool has_head = true;

  // Parameters of the stage on one rank after tensor parallelism. `whole` counts the routed experts of all ranks that
  // sharding spans, `local` those of this expert-parallel rank; sharding over data divides `whole`.
  double whole = 0, local = 0;
  double trained_whole = 0, trained_local = 0;
  double trained_vectors = 0;  ///< of trained_whole, in embedding, head and norms
  double quantised_whole = 0, quantised_local = 0;
  double adapters = 0;
  double layer = 0;          ///< one layer, routed experts of this rank only
  double trained_layer = 0;  ///< of that, trained
  double embedding = 0, head = 0;
  double other = 0;           ///< further stacks, and what lies outside the layers
  double largest_matrix = 0;  ///< elements

  double weight_shards = 1, gradient_shards = 1, state_shards = 1;

  // Forward tensors that one layer keeps, elements per token: hidden-size parts, head-size
  // and MLP-size parts (the last two split by tensor parallelism). Averages over the
  // stage, and the fullest layer.
  double hidden_elements = 0, head_elements = 0, mlp_elements = 0;
  double largest_head_elements = 0, largest_mlp_elements = 0;
  double dispatched_elements = 0;  ///< tokens copied to experts and back, in a mixture layer
  double mixture_share = 0;        ///< of the layers, those with routed experts
  double attention_share = 1;      ///< of the layers, those with attention

  [[nodiscard]] double layer_elements() const {
    return hidden_elements / hidden_split + (head_elements + mlp_elements) / tensor;
  }
  [[nodiscard]] double largest_layer_elements() const {
    return hidden_elements / hidden_split + (largest_head_elements + largest_mlp_elements) / tensor;
  }
};

/// The forward tensors of a further stack, as factors.
struct StackUse {
  double tokens = 0;  ///< of one micro-batch on one rank
  double inputs = 0;  ///< layers that keep only their input
  double whole = 0;   ///< layers that keep `share` of their tensors
  double share = 1;
  double input = 0;     ///< elements per token
  double elements = 0;  ///< of a whole layer, per token
  double crossed = 0;   ///< keys and values that the main stack's cross attention makes of it, elements per token
};

/// One layer that is computed anew in the backward pass: of the main stack, or of a further
/// one where that is larger. They never exist at once.
struct Recomputed {
  double tokens = 0;
  double elements = 0;
  const Stack* stack = nullptr;  ///< null: the main one
};

/// Weights held whole for a moment, as factors.
struct Gather {
  double units = 0;          ///< layers whole at once
  double layer_bytes = 0;    ///< one gathered layer
  double live = 0;           ///< parameters of a live-parameter pool, when that is larger than the units
  double root = 0;           ///< elements of embedding and head that stay whole
  double ring = 0;           ///< keys and values on their way around the context ring, elements
  double element_bytes = 0;  ///< of live, root and ring

  [[nodiscard]] double bytes() const {
    return (live > 0 ? live * element_bytes : units * layer_bytes) + (root + ring) * element_bytes;
  }
};

/// Gradients on their way to other ranks, as factors.
struct Reduce {
  double elements = 0;
  double element_bytes = 0;
  double buckets = 0;  ///< bytes of fixed buckets

  [[nodiscard]] double bytes() const { return elements * element_bytes + buckets; }
};

enum class Stage : std::uint8_t;
enum class Phase : std::uint8_t;

/// LoRA or QLoRA: the base is frozen and only adapters are trained.
[[nodiscard]] inline bool has_adapters(const Workload& w) {
  return w.method == Method::Lora || w.method == Method::QLora;
}

/// The factors of the first or the last pipeline stage.
[[nodiscard]] Quantities quantities(const Workload& workload, const Layout& layout, Stage stage);

/// What `stack` keeps. Nothing for a tower that is frozen, or whose input has no known size.
[[nodiscard]] StackUse stack_use(const Workload& workload, const Layout& layout, const Quantities& q,
                                 const Stack& stack);
[[nodiscard]] Recomputed recomputed_layer(const Workload& workload, const Layout& layout, const Quantities& q);

[[nodiscard]] Gather gather(const Workload& workload, const Layout& layout, const Quantities& q, Phase phase);
[[nodiscard]] Reduce reduce(const Workload& workload, const Layout& layout, const Quantities& q, Phase phase);

/// Share of the layers' forward tensors that stay from forward to backward.
[[nodiscard]] double kept_share(const Workload& workload, Recompute recompute);

/// Bytes per token and vocabulary element at the loss.
[[nodiscard]] double logit_bytes(const Workload& workload, const Quantities& q);

/// ZeRO-3 over a frozen base that keeps the gradient of every layer's input to the end of the backward pass.
[[nodiscard]] inline bool holds_input_gradients(const Workload& w, const Quantities& q) {
  return w.recipe.held_input_gradients && has_adapters(w) && q.weight_shards > 1;
}

/// Bytes of the gradients of flat parameters, which stay whole from one micro-batch to the next under ZeRO-3.
[[nodiscard]] inline double flat_gradients(const Workload& w, const Layout& layout, const Quantities& q) {
  const bool flat = w.recipe.flat_gradients && layout.sharding == Sharding::Zero3 && layout.shards() > 1;
  return flat ? q.bytes.compute * (q.local - q.quantised_local) : 0;
}

/// Layers of the stage whose tensors are all computed again: only their inputs are kept.
[[nodiscard]] double recomputed_layers(const Workload& workload, const Layout& layout, const Quantities& q);

/// Process groups with more than one member.
[[nodiscard]] int communicator_groups(const Layout& layout);

/// Whether a further stack is trained: towers are frozen beside adapters, and all of them with
/// the leading layers.
[[nodiscard]] bool trains_stack(const Workload& workload, const Stack& stack);

/// Bytes per element of the stream between layers.
[[nodiscard]] double residual_bytes(const Workload& workload, const Quantities& q);

}  // namespace loadline::estimator
