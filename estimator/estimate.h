// Memory one GPU needs, by term, phase and pipeline stage. The peak is the largest phase on
// the fullest rank, not the sum of everything that ever exists.
//
// Thread-safety: plain values; estimate() is pure, allocates nothing and does no I/O.
// Errors: none: any Workload and Layout gives an answer; arithmetic is in doubles and
// clamped to int64 at the end, so that "too much" stays too much.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "estimator/layout.h"
#include "estimator/workload.h"

namespace loadline::estimator {

enum class Term : std::uint8_t {
  Weights,
  Gradients,
  Master,
  OptimizerStates,
  OptimizerTemporary,
  ReferenceModel,
  KeptActivations,
  StackActivations,
  RecomputedLayer,
  AttentionScores,
  Logits,
  EmbeddingUpcast,
  GatherBuffers,
  ReduceBuffers,
  HeldGradients,  ///< that a sharding scheme keeps whole, or of layer inputs
  Dequantisation,
  ExpertDispatch,
  Context,
  Communicators,
  Fragmentation,
};
inline constexpr std::size_t kTerms = 20;

/// "weights", "keptActivations": the key in status.sizing.perGPU.
[[nodiscard]] std::string_view term_key(Term term);
/// "Weights", "Kept activations": for people.
[[nodiscard]] std::string_view term_name(Term term);

enum class Phase : std::uint8_t {
  Loss,           ///< end of the forward pass and the loss's backward
  LayerBackward,  ///< backward of the layers, gradients filling up
  OptimizerStep,
};
enum class Stage : std::uint8_t { First, Last };  ///< of the pipeline; Last only when it has more than one

/// "at the loss", "in the backward of a layer", "in the optimizer step".
[[nodiscard]] std::string_view phase_text(Phase phase);

/// What is on the card in one phase on one stage, in bytes.
struct PhaseUse {
  Phase phase = Phase::Loss;
  Stage stage = Stage::First;
  double kept_layers = 0;        ///< layers whose activations are alive
  double recomputed_layers = 0;  ///< of these, those of which only the input is
  std::array<double, kTerms> bytes{};

  [[nodiscard]] double operator[](Term term) const { return bytes[static_cast<std::size_t>(term)]; }
  [[nodiscard]] double& operator[](Term term) { return bytes[static_cast<std::size_t>(term)]; }
  [[nodiscard]] double on_card() const;    ///< all terms
  [[nodiscard]] double reserved() const;   ///< without context and communicators
  [[nodiscard]] double allocated() const;  ///< without fragmentation as well
};

struct Confidence {
  api::ConfidenceLevel level = api::ConfidenceLevel::LowerBound;
  double band_percent = 0;  ///< the measured use is expected within +- this
};

struct Estimate {
  std::array<PhaseUse, 6> phases{};
  std::size_t phase_count = 0;
  std::size_t peak = 0;  ///< index of the peak phase

  std::int64_t peak_bytes = 0;           ///< on the card, reserve included: the figure at the gate
  std::int64_t reserved_bytes = 0;       ///< what the framework's allocator would hold, its cache included
  std::int64_t allocated_bytes = 0;      ///< what it would have handed out at the peak
  std::int64_t host_bytes_per_node = 0;  ///< RAM for offloaded states; 0 without offload
  Confidence confidence;
  bool lower_bound_only = false;  ///< only a parameter count was given: never enforce

  [[nodiscard]] const PhaseUse& peak_use() const { return phases[peak]; }
};

[[nodiscard]] Estimate estimate(const Workload& workload, const Layout& layout);

}  // namespace loadline::estimator
