// An estimate in words: the sum a person can redo with a pocket calculator.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "estimator/estimate.h"

namespace loadline::estimator {

/// Lines for status.sizing.explanation, in reading order. The GiB at the ends of the term
/// lines add up exactly to the printed peak.
[[nodiscard]] std::vector<std::string> explain(const Workload& workload, const Layout& layout,
                                               const Estimate& estimate);

/// One line: "needs 64.0 GiB per GPU on 8 GPUs (ZeRO-3, micro-batch 2): weights+grads+Adam
/// 15.0, activations 21.4, logits 23.5, buffers 4.1; high confidence (+-5 %)". The parts add
/// up to the total as printed.
[[nodiscard]] std::string summary(const Workload& workload, const Layout& layout, const Estimate& estimate);

/// The parts of the summary only: "weights+grads+Adam 15.0, activations 21.4, ...".
[[nodiscard]] std::string parts_text(const Workload& workload, const Estimate& estimate);

/// What was taken for granted, each said once.
[[nodiscard]] std::vector<std::string> assumptions(const Workload& workload, const Layout& layout);

/// Version of the formulas, for status.sizing.formulaVersion.
[[nodiscard]] std::string_view formula_version();

}  // namespace loadline::estimator
