// `kubectl loadline plan`: where a job would run, by the same code and in the same words as
// admission and describe.
//
// Thread-safety: pure functions.
#pragma once

#include "base/result.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "cli/report.h"

namespace loadline::cli {

/// Plans `job` on the pools and nodes of `inputs`. Without nodes nothing is known of what is free:
/// then each pool counts as able to bring its scaling.maxNodes, or any number of nodes when it
/// has none. `now` dates prices. Errors: those of the job's spec.
[[nodiscard]] Result<Report> plan_report(const api::TrainingJob& job, const Inputs& inputs, TimePoint now);

}  // namespace loadline::cli
