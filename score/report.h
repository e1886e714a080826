// The score as text for people and as JSON.
//
// Thread-safety: pure.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "score/scores.h"

namespace loadline::score {

/// {"rows": [...], "summary": [...]} as documented in docs/sizing.md.
[[nodiscard]] nlohmann::json report_json(const std::vector<Outcome>& outcomes);

/// A table by class and by family, what was left out and why, and the `worst` largest errors.
[[nodiscard]] std::string report_text(const std::vector<Outcome>& outcomes, std::size_t worst);

}  // namespace loadline::score
