// Rules of admission beside those of placement/job_check.h: on a job's name, and on what an update may change.
//
// Thread-safety: pure functions. Errors: total: any JSON gives a list; an empty one is good.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.h"

namespace loadline::webhook {

/// A name that the gang's pods cannot carry.
[[nodiscard]] std::vector<FieldError> name_errors(const nlohmann::json& object);

/// Fields that may not change while the job may run, judged by the old spec's suspend alone.
[[nodiscard]] std::vector<FieldError> immutability_errors(const nlohmann::json& old_spec,
                                                          const nlohmann::json& new_spec);
/// Whether a field that decides need or place differs.
[[nodiscard]] bool plan_changes(const nlohmann::json& old_spec, const nlohmann::json& new_spec);

}  // namespace loadline::webhook
