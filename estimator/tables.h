// The facts behind an estimate, as rows: models, framework recipes, optimizers. Compiled in
// from estimator/data/*.yaml, each row with its source, and replaceable row by row by the
// text of a mounted file.
//
// Thread-safety: immutable after construction; builtin() is made once, on first use.
// Ownership: everything is held by value.
// Errors: a bad override names the file's key path; the built-in tables are checked by tests.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "api/enums.h"
#include "base/result.h"
#include "estimator/model.h"

namespace loadline::estimator {

using api::Loss;
using api::Precision;
inline constexpr std::size_t kPrecisions = 5;
inline constexpr std::size_t kLosses = 3;

/// Bytes a framework keeps per trained parameter at one precision.
struct StateBytes {
  double weights = 0;       ///< the copy the optimizer or the framework stores
  double gradients = 0;     ///< accumulated gradients
  double master = 0;        ///< fp32 copy beside low-precision weights
  double moment = 0;        ///< one optimizer moment (AdamW has two)
  double compute = 0;       ///< element of activations, and of a gathered or cast weight
  double compute_copy = 0;  ///< extra low-precision weight copies held while training (autocast, fp8)
};

/// What one framework really keeps. Every number has a physical meaning, said at the field.
struct Recipe {
  std::string name;
  std::string source;
  std::array<StateBytes, kPrecisions> states;  ///< by Precision
  std::array<double, kLosses> logits_bytes{};  ///< per token and vocabulary element, by Loss
  double logits_chunks = 8;                    ///< chunks of a chunked loss
  double layer_input_copies = 1;               ///< copies of a block's input kept by full recompute
  double attention_copies = 14;                ///< hidden-size tensors kept per layer besides the MLP's
  double mlp_copies = 4;                       ///< MLP-width tensors kept per layer (a gated MLP)
  double plain_mlp_copies = 2;                 ///< the same for a plain MLP
  double selective_share = 0.4;                ///< of those that stay with selective recompute
  double optimizer_temporary = 0;              ///< bytes per parameter held only during the step (foreach)
  double gathered_units = 2;                   ///< layers whole at once under ZeRO-3: current + prefetched
  double reduce_bytes = 4;                     ///< per element of a reduce-scatter input
  double bucket_bytes = 0;                     ///< fixed reduce/gather buckets, bytes per GPU
  double live_parameter_bytes = 0;             ///< ZeRO-3 live-parameter pool, bytes, at most
  bool root_stays_gathered = true;             ///< embedding and head whole from forward to backward
  bool ddp_bucket_copy = true;                 ///< DDP holds gradients a second time in buckets
  bool sequence_parallel = false;              ///< tensor parallel also splits what norms keep
  bool kbit_upcast = false;                    ///< k-bit preparation: fp32 embeddings, head, norms and hidden states
  double adapter_bytes = 4;                    ///< per adapter parameter (weights)
};

/// An optimizer's row.
struct OptimizerRow {
  std::string name;
  std::string source;
  double moments = 2;             ///< of size StateBytes::moment, per parameter
  double fixed_bytes = 0;         ///< per parameter whatever the precision (8-bit states and their scales)
  double vector_moments = -1;     ///< for embeddings, head and norms when it differs (Muon); -1: the same
  bool paged = false;             ///< states live in host memory when the card is short
  bool foreach_temporary = true;  ///< the multi-tensor step makes a parameter-sized temporary
};

struct Tables {
  std::vector<Model> models;
  std::vector<Recipe> recipes;
  std::vector<OptimizerRow> optimizers;

  /// The tables compiled in.
  [[nodiscard]] static const Tables& builtin();
  /// These tables with the rows of `yaml` (keys models, recipes, optimizers) replacing rows
  /// of the same name, or added.
  [[nodiscard]] Result<Tables> with_overrides(std::string_view yaml) const;

  [[nodiscard]] const Recipe* recipe(std::string_view name) const;
  [[nodiscard]] const OptimizerRow* optimizer(std::string_view name) const;
};

}  // namespace loadline::estimator
