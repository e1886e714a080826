#include "placement/sizing.h"

#include <algorithm>
#include <cmath>

#include "base/saturating.h"

namespace loadline::placement {

SizedLayouts::SizedLayouts(const estimator::Workload& workload, const api::TrainingJobSpec& spec)
    : workload_(workload), constraints_(estimator::constraints_from(spec)) {}

const std::vector<estimator::Sized>& SizedLayouts::of(const Gang& gang) {
  const auto key = std::make_pair(gang.nodes, gang.gpus_per_node);
  const auto [found, added] = by_gang_.try_emplace(key);
  if (added) {
    const std::int64_t gpus = sat_mul(gang.nodes, gang.gpus_per_node);
    for (const estimator::Layout& layout :
         estimator::sensible_layouts(workload_, gpus, gang.gpus_per_node, constraints_)) {
      found->second.push_back({layout, estimator::estimate(workload_, layout)});
    }
  }
  return found->second;
}

std::int64_t required_mib(const estimator::Estimate& estimate, const EffectivePolicy::Sizing& sizing) {
  if (sizing.override_mib) return *sizing.override_mib;
  const double peak = static_cast<double>(estimate.peak_bytes) / static_cast<double>(kMiB);
  return sat_from_double(std::ceil(peak * (100 + static_cast<double>(sizing.margin_percent)) / 100));
}

std::vector<std::int64_t> gpu_counts(const api::TrainingJobSpec& spec, const EffectivePolicy& policy) {
  const api::GpusSpec asked = spec.gpus.value_or(api::GpusSpec{});
  if (asked.count) return {std::max<std::int64_t>(1, *asked.count)};
  const std::int64_t least = std::max<std::int64_t>(1, asked.min.value_or(1));
  std::int64_t most = std::max(least, asked.max.value_or(std::max(least, kMostGpusChosen)));
  if (policy.limits.job_gpus) most = std::clamp(*policy.limits.job_gpus, least, most);
  // Powers of two, and between them multiples of a node of eight: few enough to try them all.
  std::vector<std::int64_t> counts{least, most};
  for (std::int64_t n = 1; n <= most && n <= (kSaturated >> 2); n *= 2) {
    if (n >= least) counts.push_back(n);
    const std::int64_t between = n + n / 2;
    if (n >= 16 && between >= least && between <= most) counts.push_back(between);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace loadline::placement
