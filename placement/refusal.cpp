// Admission's refusals: every cause once, with the sum and what would fit.
#include <algorithm>
#include <map>

#include "estimator/advice.h"
#include "estimator/explain.h"
#include "placement/explain.h"
#include "placement/words.h"

namespace loadline::placement {
namespace {

using Type = FieldError::Type;

std::string gpus_as_typed(const Request& request) {
  if (!request.job.spec.gpus) return "";
  const api::GpusSpec& gpus = *request.job.spec.gpus;
  if (gpus.count) return std::to_string(*gpus.count);
  if (!gpus.min && !gpus.max) return "";
  return (gpus.min ? std::to_string(*gpus.min) : "1") + ".." + (gpus.max ? std::to_string(*gpus.max) : "");
}

const api::PlacementSpec& wish_of(const Request& request) {
  static const api::PlacementSpec kNone;
  return request.job.spec.placement ? *request.job.spec.placement : kNone;
}

// The sum on the largest cards there are, and the cheapest changes that would make it fit.
FieldError memory_error(const Request& request, const Plan& plan) {
  const Candidate* largest = nullptr;
  for (const Candidate& candidate : plan.ranked) {
    if (candidate.reason != Reason::InsufficientMemory) continue;
    if (largest == nullptr || candidate.usable_mib > largest->usable_mib) largest = &candidate;
  }
  const estimator::Workload& workload = request.workload;
  const estimator::Layout& layout = *largest->layout;
  const double margin = 1 + static_cast<double>(plan.policy.sizing.margin_percent) / 100;
  estimator::Capacity capacity;
  capacity.usable_bytes =
      static_cast<std::int64_t>(static_cast<double>(largest->usable_mib) * static_cast<double>(kMiB) / margin);
  capacity.gpus_per_node = std::max<std::int64_t>(1, largest->pool->per_node);
  capacity.max_gpus = plan.policy.limits.job_gpus.value_or(0);

  std::string sum = "needs " + gib(largest->estimate.peak_bytes) + " per GPU at best (" +
                    estimator::layout_text(layout) + "): " + estimator::parts_text(workload, largest->estimate);
  if (plan.policy.sizing.override_mib) {
    sum = "needs " + gib_of_mib(largest->required_mib) + " GiB per GPU (spec.memory.overrideMiBPerGPU)";
  } else if (plan.policy.sizing.margin_percent > 0) {
    sum += "; with " + std::to_string(plan.policy.sizing.margin_percent) + " % margin " +
           gib_of_mib(largest->required_mib);
  }
  sum += "; the largest usable here is " + gib_of_mib(largest->usable_mib) + " GiB (" + largest->pool->name + ")";
  if (!plan.policy.sizing.override_mib) {
    sum += ". " + estimator::advice_text(workload, layout, estimator::constraints_from(request.job.spec), capacity);
  }
  return {Type::Invalid, "spec.gpus", gpus_as_typed(request), sum};
}

struct FieldOf {
  std::string field, value;
  Type type = Type::Invalid;
};

/// What stands in the way of a layout on the first pool that has none.
FieldOf field_without_layout(const Request& request, const Plan& plan) {
  const auto found = std::find_if(plan.ranked.begin(), plan.ranked.end(),
                                  [](const Candidate& candidate) { return candidate.reason == Reason::NoLayout; });
  if (found == plan.ranked.end() || plan.gpu_counts.empty()) return {"spec.parallelism", ""};
  const FieldError error =
      estimator::no_layout(request.workload, plan.gpu_counts.back(), std::max<std::int64_t>(1, found->pool->per_node),
                           estimator::constraints_from(request.job.spec));
  if (error.field == "spec.gpus") return {error.field, gpus_as_typed(request)};
  return {error.field, error.value};
}

FieldOf field_of(const Request& request, const Plan& plan, Reason reason) {
  const api::PlacementSpec& wish = wish_of(request);
  switch (reason) {
    case Reason::PoolExcluded: return {"spec.placement.pools", join(wish.pools, ", ")};
    case Reason::GpuModelExcluded: return {"spec.placement.gpuModels", join(wish.gpuModels, ", ")};
    case Reason::CapacityTypeExcluded:
      return {"spec.placement.capacityType",
              std::string(api::name_of(wish.capacityType.value_or(api::CapacityWish::Any)))};
    case Reason::InterconnectExcluded:
      return {"spec.placement.interconnect",
              std::string(api::name_of(wish.interconnect.value_or(api::InterconnectWish::Any)))};
    case Reason::PolicyDenied:
      if (!plan.policy.problem.empty()) return {"spec.placement.policy", wish.policy.value_or("")};
      return {"spec.placement", "", Type::Forbidden};
    case Reason::SpotNotAllowed:
    case Reason::SharedGPUs: return {"spec.placement", "", Type::Forbidden};
    case Reason::LimitExceeded: return {"spec.gpus", gpus_as_typed(request), Type::Forbidden};
    case Reason::NoLayout: return field_without_layout(request, plan);
    case Reason::InsufficientHostMemory: return {"spec.parallelism.offload", ""};
    case Reason::VolumeNotShared:
      return plan.checkpoint.existing
                 ? FieldOf{"spec.checkpoint.volume.claimName", plan.checkpoint.claim}
                 : FieldOf{"spec.checkpoint.volume.accessModes", join(plan.checkpoint.access_modes, ", ")};
    case Reason::StorageClassNotListed:
      return plan.checkpoint.existing
                 ? FieldOf{"spec.checkpoint.volume.claimName", plan.checkpoint.claim}
                 : FieldOf{"spec.checkpoint.volume.storageClassName", plan.checkpoint.storage_class.value_or("")};
    default: return {"spec.gpus", gpus_as_typed(request)};
  }
}

bool asked_for_by_user(Reason reason) {
  return reason == Reason::PoolExcluded || reason == Reason::GpuModelExcluded ||
         reason == Reason::CapacityTypeExcluded || reason == Reason::InterconnectExcluded;
}

}  // namespace

std::vector<FieldError> refusals(const Request& request, const Plan& plan) {
  if (plan.outcome != Outcome::Unplaceable) return {};
  if (!plan.policy.problem.empty()) {
    return {{Type::Invalid, "spec.placement.policy", wish_of(request).policy.value_or(""), plan.policy.problem}};
  }
  std::map<Reason, std::vector<const Candidate*>> by_reason;
  for (const Candidate& candidate : plan.ranked) by_reason[candidate.reason].push_back(&candidate);
  // What the user excluded is only the cause when nothing else is left.
  const bool other_causes = std::any_of(by_reason.begin(), by_reason.end(),
                                        [](const auto& entry) { return !asked_for_by_user(entry.first); });
  std::vector<FieldError> errors;
  if (by_reason.count(Reason::InsufficientMemory) > 0) errors.push_back(memory_error(request, plan));
  for (const auto& [reason, candidates] : by_reason) {
    if (reason == Reason::InsufficientMemory || (other_causes && asked_for_by_user(reason))) continue;
    const FieldOf field = field_of(request, plan, reason);
    errors.push_back({field.type, field.field, field.value, pools_and_why(candidates)});
  }
  return errors;
}

}  // namespace loadline::placement
