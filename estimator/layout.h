// How a workload is laid over GPUs, and which layouts are worth considering.
//
// Thread-safety: plain values; pure functions.
// Errors: none; constraints that cannot be met give an empty list and a reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/enums.h"
#include "base/result.h"

namespace loadline::estimator {

struct Workload;

using api::Offload;
using api::Sharding;
using Recompute = api::ActivationCheckpointing;

/// gpus == tensor * pipeline * context * data * dense_copies(). `expert` divides data * context / replicate, or is one
/// of the factors where dense_copies() is more than 1.
struct Layout {
  std::int64_t gpus = 1;
  std::int64_t tensor = 1;  ///< within one node
  std::int64_t pipeline = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  std::int64_t data = 1;            ///< replicas; ZeRO shards over data * context / replicate
  std::int64_t replicate = 1;       ///< groups that each hold all shards (hybrid sharding); divides data
  std::int64_t virtual_stages = 1;  ///< chunks of the model per pipeline stage (interleaved schedule)
  Sharding sharding = Sharding::None;
  Offload offload = Offload::None;
  Recompute recompute = Recompute::None;
  std::int64_t micro_batch = 1;  ///< sequences per data-parallel rank and pass
  std::int64_t gpus_per_node = 8;

  /// GPUs that share the sharded states.
  [[nodiscard]] std::int64_t shards() const { return data * context / replicate; }
  [[nodiscard]] bool recomputes_layers() const {
    return recompute == Recompute::Full || recompute == Recompute::Offload;
  }
  [[nodiscard]] std::int64_t nodes() const { return (gpus + gpus_per_node - 1) / gpus_per_node; }
  bool operator==(const Layout&) const = default;
};

/// What the user fixed; absent fields are chosen.
struct LayoutConstraints {
  std::optional<std::int64_t> tensor;
  std::optional<std::int64_t> pipeline;
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> expert;
  std::optional<std::int64_t> replicate;
  std::optional<std::int64_t> virtual_stages;
  std::optional<Sharding> sharding;
  std::optional<Offload> offload;
};

/// Ranks of one expert group that work on the same batch, each with all but the experts: `expert` in recipes where an
/// expert group shares its batch, else 1.
[[nodiscard]] std::int64_t dense_copies(const Workload& workload, const Layout& layout);

/// Micro-batches each data-parallel rank runs per optimizer step (>= 1).
[[nodiscard]] std::int64_t accumulation_steps(const Workload& workload, const Layout& layout);

/// Layouts of `gpus` GPUs, spread evenly over as few nodes of at most `gpus_per_node` as can be (each >= 1), least
/// communication first. Tensor parallel stays inside a node and divides heads and KV heads, pipeline
/// divides layers, the global batch is a whole number of micro-batches per rank. Empty when
/// nothing satisfies workload and constraints; why_no_layout() then says why.
[[nodiscard]] std::vector<Layout> sensible_layouts(const Workload& workload, std::int64_t gpus,
                                                   std::int64_t gpus_per_node, const LayoutConstraints& constraints);

/// For the user when sensible_layouts() is empty: the field that stands in the way, which rule and which numbers. When
/// it is the number of GPUs, "spec.gpus": how that was given is the caller's to know.
[[nodiscard]] FieldError no_layout(const Workload& workload, std::int64_t gpus, std::int64_t gpus_per_node,
                                   const LayoutConstraints& constraints);
/// Its sentence alone.
[[nodiscard]] std::string why_no_layout(const Workload& workload, std::int64_t gpus, std::int64_t gpus_per_node,
                                        const LayoutConstraints& constraints);

/// "ZeRO-3 over 8, micro-batch 2"; "TP 8 x PP 2 x DP 2, ZeRO-1, micro-batch 1, full recompute".
[[nodiscard]] std::string layout_text(const Layout& layout);
/// "ZeRO-3", "DDP", "TP 8 x PP 2 x DP 2": the short form for the summary line.
[[nodiscard]] std::string layout_short(const Layout& layout);

}  // namespace loadline::estimator
