// The order of the candidates: what can start before what waits, then the policy's objective.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "placement/plan.h"

namespace loadline::placement {

/// What a candidate costs under an objective; compared only between equal keys.
struct Score {
  bool known = false;    ///< false: speed or price is missing, ranked after those that are known
  std::string currency;  ///< empty when money is not part of the objective
  double value = 0;      ///< less is better
  double hours = 0;      ///< breaks ties: of the run, or for a billion tokens
};

[[nodiscard]] Score score_of(const EffectivePolicy& policy, const Candidate& candidate);

/// The job's own pool counts as this much cheaper, so that near ties do not move it about.
inline constexpr double kStayFactor = 0.95;

/// Sorts: chosen-able first. `escalated` prefers the policy's escalateTo. Deterministic: the
/// last tie is broken by the pool's name.
void rank(const Request& request, const EffectivePolicy& policy, bool escalated, std::vector<Candidate>& candidates);

/// Of several sizes on one pool, whether `a` is the better one.
[[nodiscard]] bool better_size(const EffectivePolicy& policy, const Candidate& a, const Candidate& b);

}  // namespace loadline::placement
