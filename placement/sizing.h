// Layouts of the job with their estimates, made once per shape of gang and shared by all pools.
//
// Thread-safety: one object per plan; not shared between threads.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "estimator/advice.h"
#include "placement/gang_capacity.h"
#include "placement/plan.h"

namespace loadline::placement {

class SizedLayouts {
 public:
  /// References must outlive the object.
  SizedLayouts(const estimator::Workload& workload, const api::TrainingJobSpec& spec);

  /// Sensible layouts of a gang, least communication first; empty when there is none.
  const std::vector<estimator::Sized>& of(const Gang& gang);
  [[nodiscard]] const estimator::LayoutConstraints& constraints() const { return constraints_; }

 private:
  const estimator::Workload& workload_;
  estimator::LayoutConstraints constraints_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<estimator::Sized>> by_gang_;
};

/// MiB per GPU that the gate asks for: the peak and the margin, rounded up, or the override.
[[nodiscard]] std::int64_t required_mib(const estimator::Estimate& estimate, const EffectivePolicy::Sizing& sizing);

/// Numbers of GPUs to try, ascending: the user's, or the usual ones within the user's bounds
/// and the policy's limit per job.
[[nodiscard]] std::vector<std::int64_t> gpu_counts(const api::TrainingJobSpec& spec, const EffectivePolicy& policy);

/// Most GPUs tried when the user names neither a number nor a maximum.
inline constexpr std::int64_t kMostGpusChosen = 64;

}  // namespace loadline::placement
