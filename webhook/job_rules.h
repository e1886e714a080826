// What makes a TrainingJob's spec wrong, whatever the cluster looks like.
//
// Thread-safety: pure functions. Errors: total: any JSON gives a list; an empty one is good.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/training_job.h"
#include "base/result.h"

namespace loadline::webhook {

/// Rules between fields and on free text that the schema cannot hold, and the schema's own bounds once more.
[[nodiscard]] std::vector<FieldError> spec_errors(const api::TrainingJob& job);

/// Rules on spec.template: which container is the trainer, whole GPUs with equal request and limit and only there,
/// and no field that belongs to Loadline.
[[nodiscard]] std::vector<FieldError> template_errors(const nlohmann::json& pod_template);
/// What is allowed there but will not be as written.
[[nodiscard]] std::vector<std::string> template_notes(const nlohmann::json& pod_template);

/// Fields that may not change while the job may run, judged by the old spec's suspend alone.
[[nodiscard]] std::vector<FieldError> immutability_errors(const nlohmann::json& old_spec,
                                                          const nlohmann::json& new_spec);
/// Whether a field that decides need or place differs.
[[nodiscard]] bool plan_changes(const nlohmann::json& old_spec, const nlohmann::json& new_spec);

}  // namespace loadline::webhook
