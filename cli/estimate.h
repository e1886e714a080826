// `kubectl loadline estimate`: the memory a job needs on each GPU, without any pool: on a card that is
// named, or on the smallest card known that holds it.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/training_job.h"
#include "base/result.h"
#include "cli/report.h"

namespace loadline::cli {

struct EstimateOptions {
  std::string gpu;  ///< product, as a node or a person names it ("A100 80GB"); empty: the smallest that holds it
  std::optional<std::int64_t> gpus;  ///< instead of spec.gpus
  std::int64_t gpus_per_node = 8;    ///< >= 1
};

/// Errors: those of the job's spec, an unknown card, a card whose memory only its node can tell.
[[nodiscard]] Result<Report> estimate_report(const api::TrainingJob& job, const EstimateOptions& options);

}  // namespace loadline::cli
