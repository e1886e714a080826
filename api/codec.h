// JSON to the three kinds and back, for any type of this folder that lists its fields.
//
// Reading is strict about types and gathers every error of the object at once, each with
// the field's path and the value as typed. Unknown fields are reported, not dropped: the
// schema prunes them at the API server, but a file read offline has passed no schema.
// Writing leaves absent optionals and empty lists and maps out.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "api/gpu_pool.h"
#include "api/placement_policy.h"
#include "api/training_job.h"
#include "base/result.h"

namespace loadline::api {

/// What to do with a field the type does not know.
enum class UnknownFields {
  Reject,  ///< FieldError: what a person typed
  Ignore,  ///< objects from the API server, which may be newer than this program
};

[[nodiscard]] Result<TrainingJob> parse_training_job(const nlohmann::json& object, UnknownFields unknown);
[[nodiscard]] Result<PlacementPolicy> parse_placement_policy(const nlohmann::json& object, UnknownFields unknown);
[[nodiscard]] Result<GPUPool> parse_gpu_pool(const nlohmann::json& object, UnknownFields unknown);

/// The whole object with apiVersion and kind; a status without any field set is left out.
[[nodiscard]] nlohmann::json to_json(const TrainingJob& job);
[[nodiscard]] nlohmann::json to_json(const PlacementPolicy& policy);
[[nodiscard]] nlohmann::json to_json(const GPUPool& pool);
/// Only the status, for a write to the status subresource.
[[nodiscard]] nlohmann::json to_json(const TrainingJobStatus& status);
[[nodiscard]] nlohmann::json to_json(const PlacementPolicyStatus& status);
[[nodiscard]] nlohmann::json to_json(const GPUPoolStatus& status);

}  // namespace loadline::api
