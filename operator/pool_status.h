// Status of the two cluster-scoped kinds, as pure functions of what the inventory sees.
//
// Thread-safety: pure functions. Errors: none; what is wrong with an object becomes a condition on it.
#pragma once

#include <string>
#include <vector>

#include "operator/action.h"
#include "operator/observed.h"

namespace loadline::controller {

/// Node-hours that the prior of a pool's interruption rate weighs as much as.
inline constexpr double kPriorNodeHours = 24;

/// Interruptions per node and hour: what the jobs' attempts on the pool went through, with the prior as if it had been
/// seen over kPriorNodeHours (the mean of a Gamma posterior under Poisson losses). Nothing when nothing ran there;
/// without a prior nothing before kPriorNodeHours, as one short attempt would make a pool safe or hopeless, and then as
/// if one loss more had been seen: none yet is not never.
[[nodiscard]] std::optional<double> learned_rate(const std::vector<api::TrainingJob>& jobs, const std::string& pool,
                                                 std::optional<double> prior, TimePoint now);

/// The status write the GPUPool needs; empty when its status is right already.
[[nodiscard]] Decision decide_pool(const kube::Object& stored, const ClusterFacts& cluster,
                                   const std::vector<api::TrainingJob>& jobs, TimePoint now);

/// The status write the PlacementPolicy needs; empty when its status is right already.
[[nodiscard]] Decision decide_policy(const kube::Object& stored, TimePoint now);

}  // namespace loadline::controller
