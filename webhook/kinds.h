// The verdict on each kind. Internal to webhook/; see review.h.
//
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.h"
#include "webhook/admission.h"
#include "webhook/snapshot.h"

namespace loadline::webhook {

[[nodiscard]] Verdict validate_job(const Request& request, const Snapshot& snapshot);
[[nodiscard]] Verdict validate_pool(const Request& request, const Snapshot& snapshot);
[[nodiscard]] Verdict validate_policy(const Request& request, const Snapshot& snapshot);

/// The errors of `fresh` that `old` did not have already: an object stored before a rule existed can still be edited
/// elsewhere. `errors_of` judges one object.
[[nodiscard]] std::vector<FieldError> errors_brought_in(
    const nlohmann::json& fresh, const nlohmann::json* old,
    const std::function<std::vector<FieldError>(const nlohmann::json&)>& errors_of);

}  // namespace loadline::webhook
