// A plan in words and as status: webhook, operator and cli all print these, so that a user
// reads the same sentence everywhere. The answer first, then the sum, then what would change it.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "api/training_job_status.h"
#include "base/result.h"
#include "placement/plan.h"

namespace loadline::placement {

/// What kubectl prints at apply: need, where it will run, what it is expected to take and
/// cost, checkpoint claim; then what the user should know. Each at most 256 bytes.
[[nodiscard]] std::vector<std::string> apply_warnings(const Request& request, const Plan& plan);

/// Why admission refuses the job: every cause, with the sum and what would fit. Empty when
/// it is admitted (also when it waits, or only a policy in mode Warn or DryRun speaks against it).
[[nodiscard]] std::vector<FieldError> refusals(const Request& request, const Plan& plan);

/// Lines for status.placement.explanation.
[[nodiscard]] std::vector<std::string> placement_explanation(const Request& request, const Plan& plan);

/// One line for the conditions Placed and Admitted: where it runs, what it waits for, or why never.
[[nodiscard]] std::string outcome_message(const Request& request, const Plan& plan);
/// CamelCase reason beside it: Placed, ScalingUp, NoFreeGPUs, InsufficientMemory, ...
[[nodiscard]] std::string outcome_reason(const Plan& plan);

/// "gke-a100-80g-spot: 1 node x 8 GPUs, NVSwitch".
[[nodiscard]] std::string where_text(const Candidate& candidate);

[[nodiscard]] api::SizingStatus sizing_status(const Request& request, const Plan& plan);
[[nodiscard]] api::PlacementStatus placement_status(const Request& request, const Plan& plan);
[[nodiscard]] api::CheckpointStatus checkpoint_status(const Request& request, const Plan& plan);
[[nodiscard]] api::LayoutStatus layout_status(const estimator::Workload& workload, const estimator::Layout& layout);
[[nodiscard]] api::EffectivePolicyStatus policy_status(const EffectivePolicy& policy);

}  // namespace loadline::placement
