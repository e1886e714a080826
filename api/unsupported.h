// Fields that the API has and nothing acts on yet. A job that asks for one is refused, as ignoring it would be worse;
// a pool or policy only gets a warning. The webhook and the operator both go by it. Who makes a field work takes its
// row out.
//
// Thread-safety: pure functions; the table is constant.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace loadline::api {

/// One "not supported yet" per such field of an object of `kind` that is set.
[[nodiscard]] std::vector<FieldError> unsupported_fields(std::string_view kind, const nlohmann::json& object);

}  // namespace loadline::api
