#include "placement/outlook.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace loadline::placement {
namespace {

constexpr double kHour = 3600;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

PoolHistory history_of(const Request& request, const std::string& pool) {
  const auto found = request.history.find(pool);
  return found == request.history.end() ? PoolHistory{} : found->second;
}

std::optional<double> asked_interval(const Request& request) {
  if (!request.job.spec.checkpoint || !request.job.spec.checkpoint->interval) return std::nullopt;
  const auto seconds = parse_duration(*request.job.spec.checkpoint->interval);
  return seconds && *seconds > 0 ? seconds : std::nullopt;
}

}  // namespace

// The gang's rate is a Gamma posterior: a prior worth one interruption at its own mean time,
// then what was seen. Reclaims of a stated rate are taken as independent between nodes.
double interruptions_per_hour(const Pool& pool, const PoolHistory& history, std::int64_t nodes, std::int64_t gpus) {
  const double n = static_cast<double>(std::max<std::int64_t>(1, nodes));
  const double seen = static_cast<double>(std::max<std::int64_t>(0, history.preemptions));
  const double gang_hours = std::max(0.0, history.node_hours) / n;
  double prior = 0;
  if (pool.reclaims_per_node_hour) {
    prior = *pool.reclaims_per_node_hour * n;
  } else if (pool.capacity_type == api::CapacityType::Spot) {
    prior = 1 / kAssumedSpotHours;
  }
  double reclaims = prior;
  if (prior > 0) {
    reclaims = (1 + seen) / (1 / prior + gang_hours);
  } else if (seen > 0) {
    constexpr double kMonth = 720;  // capacity that is not expected to be reclaimed, but was
    reclaims = seen / (kMonth + gang_hours);
  }
  return reclaims + kFailuresPerGpuHour * static_cast<double>(std::max<std::int64_t>(1, gpus));
}

void look_ahead(const Request& request, const EffectivePolicy& policy, const CheckpointPlan& checkpoint,
                const estimator::StepTime& step, Candidate& candidate) {
  const Pool& pool = *candidate.pool;
  const estimator::Layout& layout = *candidate.layout;
  Outlook outlook;
  outlook.step_seconds = step.total;
  outlook.tokens_per_second = step.tokens_per_second();
  const double rate = interruptions_per_hour(pool, history_of(request, pool.name), layout.nodes(), layout.gpus);
  outlook.mean_between_seconds = rate > 0 ? kHour / rate : kInfinity;

  const bool writes = !checkpoint.claim.empty();
  if (writes) {
    estimator::IntervalInputs inputs;
    inputs.checkpoint_bytes = static_cast<double>(checkpoint.size.total_bytes);
    inputs.write_mib_per_s = pool.write_mib_per_s;
    inputs.mean_between_seconds = outlook.mean_between_seconds;
    inputs.user_seconds = asked_interval(request);
    inputs.longest_seconds = policy.checkpoint.longest_seconds;
    candidate.interval = estimator::checkpoint_interval(inputs);
  }
  const double boot = static_cast<double>(pool.max_nodes ? pool.boot_seconds : 0);
  outlook.restart_seconds = kRestartSeconds + candidate.interval.write_seconds + boot;

  // Without a length, the slowdown of a day's work stands for the run.
  const double left = std::max(0.0, request.workload.total_tokens - request.tokens_done);
  const bool has_length = request.workload.total_tokens > 0;
  const double speed = outlook.tokens_per_second;
  const double work = has_length && speed > 0 ? left / speed : 24 * kHour;
  const double tau = writes ? candidate.interval.seconds : work;
  const double wall = estimator::expected_wall(work, tau, candidate.interval.write_seconds, outlook.restart_seconds,
                                               outlook.mean_between_seconds);
  outlook.slowdown = work > 0 ? wall / work : 1;
  if (has_length) {
    outlook.work_hours = work / kHour;
    outlook.hours = wall / kHour;
    outlook.interruptions = std::isinf(outlook.mean_between_seconds) ? 0 : wall / outlook.mean_between_seconds;
  }
  if (candidate.price_per_hour) {
    if (outlook.hours) outlook.cost = *candidate.price_per_hour * *outlook.hours;
    if (speed > 0) outlook.cost_per_billion_tokens = *candidate.price_per_hour * outlook.slowdown * 1e9 / speed / kHour;
  }
  candidate.outlook = outlook;
}

CheckpointPlan checkpoint_plan(const Request& request, const EffectivePolicy& policy) {
  CheckpointPlan plan;
  plan.size = estimator::checkpoint_size(request.workload);
  if (!request.job.spec.checkpoint) return plan;
  const api::CheckpointSpec& spec = *request.job.spec.checkpoint;
  static const api::CheckpointVolumeSpec kNoWish;
  const api::CheckpointVolumeSpec& volume = spec.volume ? *spec.volume : kNoWish;
  plan.keep_last = std::clamp<std::int64_t>(spec.keepLast.value_or(2), 1, 1000);
  plan.retain = volume.retain.value_or(policy.checkpoint.retain.value_or(api::RetainPolicy::Retain));
  plan.access_modes = volume.accessModes;
  if (volume.claimName && !volume.claimName->empty()) {
    plan.claim = *volume.claimName;
    plan.existing = true;
    return plan;
  }
  plan.claim = request.job.metadata.name + "-checkpoint";
  plan.storage_class = volume.storageClassName ? volume.storageClassName : policy.checkpoint.default_class;
  const auto asked = volume.size && *volume.size != "auto" ? parse_quantity(*volume.size) : std::nullopt;
  plan.bytes = asked ? *asked : estimator::checkpoint_volume_bytes(plan.size, plan.keep_last);
  return plan;
}

}  // namespace loadline::placement
