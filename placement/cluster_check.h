// What makes a GPUPool or a PlacementPolicy wrong whatever the cluster looks like. The webhook refuses by it, and
// `kubectl loadline` too.
//
// Thread-safety: pure functions. Errors: total: any JSON gives a list; an empty one is good.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace loadline::placement {

/// Fields that cannot be read, wrong figures and prices, and bounds of the schema once more.
[[nodiscard]] std::vector<FieldError> pool_errors(const nlohmann::json& object);
/// Fields that cannot be read, wrong figures, and rules that leave nothing to choose.
[[nodiscard]] std::vector<FieldError> policy_errors(const nlohmann::json& object);

/// "kept, but not used yet: spec.a, spec.b", in one line as it is the same news; nothing when all is used.
[[nodiscard]] std::vector<std::string> unused_fields(std::string_view kind, const nlohmann::json& object);

}  // namespace loadline::placement
