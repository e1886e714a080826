// Whether a gang on a pool can mount the job's checkpoint volume: the claim as it is, else as it would be made.
//
// Thread-safety: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <optional>

#include "placement/filters.h"
#include "placement/plan.h"

namespace loadline::placement {

/// A pool that lists StorageClasses mounts volumes of no other one.
[[nodiscard]] std::optional<Refusal> class_not_listed(const Request& request, const Plan& plan, const Pool& pool);

/// Every node of a gang writes its share of a checkpoint. Modes that are left open are chosen to fit the gang.
[[nodiscard]] std::optional<Refusal> not_shared(const Request& request, const Plan& plan, std::int64_t nodes);

}  // namespace loadline::placement
