// Hard filters that need no sizing: what the user excluded and what the policy keeps away.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/plan.h"

namespace loadline::placement {

struct Refusal {
  Reason reason = Reason::Fits;
  std::string detail;
};

/// spec.placement of the job, and GPUs that cannot be had whole.
[[nodiscard]] std::optional<Refusal> excluded_by_job(const Request& request, const Pool& pool);

/// Allow and deny lists, spot rules; escalation is looked at apart.
[[nodiscard]] std::optional<Refusal> excluded_by_policy(const Request& request, const EffectivePolicy& policy,
                                                        const Pool& pool);

/// Limits per job and namespace for a sized candidate.
[[nodiscard]] std::optional<Refusal> over_limit(const Request& request, const EffectivePolicy& policy,
                                                const Usage& others, const Candidate& candidate);

/// Limits on cost that do not cover all they seem to, and why, in words.
[[nodiscard]] std::vector<std::string> limits_not_checked(const Request& request, const EffectivePolicy& policy,
                                                          const Usage& others);

/// Whether the job has been moved off spot under this policy; never unless it is enforced.
[[nodiscard]] bool escalated(const Request& request, const EffectivePolicy& policy, const Inventory& inventory,
                             TimePoint now);

}  // namespace loadline::placement
