// YAML as Kubernetes' tools read it, as JSON values: plain scalars are typed by the YAML 1.2
// core schema ("8.03e9" a number, "yes" a string), quoted ones stay strings, "<<" merges.
//
// Thread-safety: pure functions.
// Errors: "job.yaml:12: duplicate key \"gpus\"". A text that expands to more than 200000
// values or nests deeper than 100 is refused: aliases can make a small file endless.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace loadline::cli {

/// The documents of a YAML (or JSON) text in order; empty ones are left out. `source` names the
/// text in errors.
[[nodiscard]] Result<std::vector<nlohmann::json>> json_from_yaml(std::string_view text, const std::string& source);

}  // namespace loadline::cli
