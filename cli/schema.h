// What the CRDs say of single values: bounds, lengths, forms and names, for files that no API server has looked at.
// Types, missing and unknown fields are the codec's; rules between fields are placement's.
//
// Thread-safety: pure functions; the schemas are part of the program and read once, on first use.
// Errors: total: any JSON gives a list; an empty one is good.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace loadline::cli {

/// What the schema of `kind`, one of ours, refuses in an object's metadata and spec.
[[nodiscard]] std::vector<FieldError> schema_errors(const std::string& kind, const nlohmann::json& object);

}  // namespace loadline::cli
