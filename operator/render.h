// An attempt as Kubernetes objects: pure renderings of the job's spec and of the attempt's record in its status.
//
// Thread-safety: pure functions. Errors: none; the spec was checked before (admit.cpp).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/training_job.h"
#include "placement/plan.h"

namespace loadline::controller {

/// What a rendering is made from. References must outlive the call.
struct Rendering {
  const api::TrainingJob& job;           ///< metadata and spec
  const api::TrainingJobStatus& status;  ///< placement and checkpoint as recorded for the attempt
  const api::AttemptStatus& attempt;
  const placement::Pool& pool;
  std::set<std::string> avoided_nodes = {};  ///< the gang is kept off these
};

/// resources.limits.memory of the trainer, as typed.
[[nodiscard]] std::optional<std::string> trainer_memory_limit(const nlohmann::json& pod_template);

/// The headless Service that gives the pods their names in DNS, ready or not.
[[nodiscard]] nlohmann::json render_service(const Rendering& r);
/// The checkpoint claim: labelled, and without an owner, so that it outlives the job.
[[nodiscard]] nlohmann::json render_claim(const api::TrainingJob& job, const placement::CheckpointPlan& plan);
/// plan.json, deepspeed.json and accelerate.yaml for the chosen layout.
[[nodiscard]] nlohmann::json render_plan_config(const Rendering& r);
/// The gang: an Indexed Job of one pod per node that fails as a whole.
[[nodiscard]] nlohmann::json render_job(const Rendering& r);

/// The environment that docs/architecture.md promises, in a fixed order, without regard to what the user set.
[[nodiscard]] nlohmann::json environment(const Rendering& r);
/// Whether there may be a checkpoint to resume from: not on a first attempt with a fresh volume.
[[nodiscard]] bool may_resume(const Rendering& r);
/// Names in environment() that the trainer container sets itself; those stay the user's.
[[nodiscard]] std::vector<std::string> user_environment(const Rendering& r);

/// Contents of the plan's files.
[[nodiscard]] nlohmann::json plan_file(const Rendering& r);
[[nodiscard]] nlohmann::json deepspeed_file(const Rendering& r);
[[nodiscard]] std::string accelerate_file(const Rendering& r);

/// Where the checkpoint volume is mounted in the trainer.
[[nodiscard]] std::string checkpoint_directory(const api::TrainingJob& job);
/// The file by which a checkpoint's directory is known to be complete.
[[nodiscard]] std::string checkpoint_marker(const api::TrainingJob& job);

/// Labels of all children of a job; with the attempt's and the pool's for those of an attempt.
[[nodiscard]] nlohmann::json job_labels(const api::TrainingJob& job);
[[nodiscard]] nlohmann::json attempt_labels(const Rendering& r);
[[nodiscard]] nlohmann::json owner_reference(const api::TrainingJob& job);

inline constexpr const char* kPlanDirectory = "/etc/loadline";
inline constexpr int kMasterPort = 29500;  ///< PyTorch's default

}  // namespace loadline::controller
