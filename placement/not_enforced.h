// What a policy in mode Warn or DryRun would do: the plan under it, enforced, held against the plan that counts.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "placement/plan.h"

namespace loadline::placement {

/// What would come of the job where that differs, then each pool that would be refused, then notes; a line each.
[[nodiscard]] std::vector<std::string> not_enforced(const Plan& plan, const Plan& enforced);

}  // namespace loadline::placement
