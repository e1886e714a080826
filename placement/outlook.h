// What running to the end on a pool is expected to take: step time, interruptions, checkpoint
// overhead, hours and cost. The formulas are in docs/placement.md.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>

#include "placement/plan.h"

namespace loadline::placement {

/// Spot capacity whose pool says nothing of reclaims: one per gang in this many hours.
inline constexpr double kAssumedSpotHours = 4;
/// Hardware failures per GPU-hour: 419 in 54 days on 16384 GPUs (Llama 3 405B).
inline constexpr double kFailuresPerGpuHour = 2.0e-5;
/// Pods, images, communicators and warm-up of a restart, without the load of the checkpoint.
inline constexpr double kRestartSeconds = 180;
/// A run that takes this many times its work is not getting on.
inline constexpr double kNoProgressSlowdown = 20;

/// Interruptions of the whole gang per hour on this pool, as expected after what happened there.
[[nodiscard]] double interruptions_per_hour(const Pool& pool, const PoolHistory& history, std::int64_t nodes,
                                            std::int64_t gpus);

/// Fills interval and outlook of a candidate that has a layout and, where it is known, its price.
void look_ahead(const Request& request, const EffectivePolicy& policy, const CheckpointPlan& checkpoint,
                const estimator::StepTime& step, Candidate& candidate);

/// The checkpoint volume the job gets. A pool may name its storage class.
[[nodiscard]] CheckpointPlan checkpoint_plan(const Request& request, const EffectivePolicy& policy);

}  // namespace loadline::placement
