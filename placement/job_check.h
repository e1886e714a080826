// What makes a TrainingJob wrong whatever the cluster looks like. The webhook refuses by it, and the operator goes by
// it again, as a webhook can be skipped. Whether a pool can hold the job is the plan's question.
//
// Thread-safety: pure functions. Errors: total: any JSON gives a list; an empty one is good.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/training_job.h"
#include "base/result.h"

namespace loadline::placement {

/// All that is wrong with a job as sent or stored, its status aside: fields that cannot be read, what the rules below
/// say, what cannot be sized, and what is not supported yet.
[[nodiscard]] std::vector<FieldError> check_job(const nlohmann::json& object);

/// Rules between fields and on free text that the schema cannot hold, and the schema's own bounds once more.
[[nodiscard]] std::vector<FieldError> check_spec(const api::TrainingJobSpec& spec);

/// Rules on spec.template: which container is the trainer, whole GPUs with equal request and limit and only there,
/// and no field that belongs to Loadline.
[[nodiscard]] std::vector<FieldError> check_template(const nlohmann::json& pod_template);
/// What is allowed there but will not be as written.
[[nodiscard]] std::vector<std::string> template_notes(const nlohmann::json& pod_template);
/// Index of the container named trainer, or of the only one; nothing otherwise.
[[nodiscard]] std::optional<std::size_t> trainer_index(const nlohmann::json& pod_template);
/// Whether the trainer's command is given, rather than left to the image's entrypoint.
[[nodiscard]] bool names_command(const nlohmann::json& pod_template);

}  // namespace loadline::placement
