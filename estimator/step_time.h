// How long one optimizer step takes: arithmetic over what the kernels reach, plus what
// communication is not hidden behind it, plus the pipeline's bubble and the update itself.
// A planning model: good to rank pools and layouts, within about 30 % of measured dense
// runs (the rows checked are in the tests and in docs/placement.md).
//
// Thread-safety: pure functions.
// Errors: what is not known is said (Error::Code::NotFound with words), never guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "estimator/gpu.h"
#include "estimator/layout.h"
#include "estimator/workload.h"

namespace loadline::estimator {

/// The machine a layout runs on.
struct Machine {
  const Gpu* gpu = nullptr;  ///< null: unknown product
  api::Interconnect link = api::Interconnect::Unknown;
  std::optional<double> network_gbps;  ///< of one node, all its adapters; absent: unknown
};

/// Seconds on the critical path of one optimizer step, by cause; `total` is their sum.
struct StepTime {
  double compute = 0;  ///< forward, backward, recompute
  double tensor = 0;   ///< all-reduces of tensor parallel, not hidden
  double context = 0;  ///< ring of context parallel, not hidden
  double expert = 0;   ///< all-to-alls of expert parallel, not hidden
  double data = 0;     ///< gradients and gathered weights, the part not hidden behind compute
  double bubble = 0;   ///< pipeline stages waiting
  double update = 0;   ///< optimizer, offload transfers included
  double total = 0;
  double tokens = 0;  ///< trained on in one step, all GPUs
  double mfu = 0;     ///< model FLOPs over peak, 0..1

  [[nodiscard]] double tokens_per_second() const { return total > 0 ? tokens / total : 0; }
};

/// FLOPs of the model for one token, forward and backward, without recompute (the
/// convention of MFU): 6 per trained parameter in matrices, 4 per frozen one, and
/// 12 x layers x heads x head size x sequence for attention, causality not discounted.
[[nodiscard]] double model_flops_per_token(const Workload& workload);

/// `layout` must come from sensible_layouts() or satisfy its invariants. NotFound when the
/// GPU's speed is unknown, or several nodes are used and their network is unknown.
[[nodiscard]] Result<StepTime> step_time(const Workload& workload, const Layout& layout, const Machine& machine);

/// "1.9 s a step: compute 1.5, gradients and gathers 0.3, update 0.1; 34 % MFU".
[[nodiscard]] std::string step_time_text(const StepTime& time);

}  // namespace loadline::estimator
