// The environment of the trainer: what torchrun, and a program of one's own, need to find its peers and its checkpoint.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.h"
#include "kube/json_read.h"
#include "operator/names.h"
#include "operator/render.h"
#include "placement/job_check.h"

namespace loadline::controller {
namespace {

using nlohmann::json;

json value(const char* name, std::string text) { return {{"name", name}, {"value", std::move(text)}}; }

/// The pod's rank within the gang; the Job controller annotates each pod with its index.
json rank(const char* name) {
  return {{"name", name},
          {"valueFrom",
           {{"fieldRef", {{"fieldPath", "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}}}};
}

std::string number(std::int64_t n) { return std::to_string(n); }

}  // namespace

json environment(const Rendering& r) {
  const api::LayoutStatus& layout = *r.status.placement->layout;
  const std::string master = master_address(r.job.metadata.name, r.job.metadata.namespaceName, r.attempt.number);
  const std::string nodes = number(layout.nodes), per_node = number(layout.gpusPerNode), port = number(kMasterPort);
  json env =
      json::array({value("MASTER_ADDR", master), value("MASTER_PORT", port), value("NNODES", nodes), rank("NODE_RANK"),
                   value("NPROC_PER_NODE", per_node), value("WORLD_SIZE", number(layout.gpus)),
                   value("PET_MASTER_ADDR", master), value("PET_MASTER_PORT", port), value("PET_NNODES", nodes),
                   rank("PET_NODE_RANK"), value("PET_NPROC_PER_NODE", per_node),
                   // What the sizing assumes; without it the allocator's cache splinters.
                   value("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
                   value("LOADLINE_ATTEMPT", number(r.attempt.number)),
                   value("LOADLINE_PLAN", std::string(kPlanDirectory) + "/plan.json")});
  if (r.status.checkpoint && r.status.checkpoint->claim) {
    const std::string directory = checkpoint_directory(r.job);
    env.push_back(value("LOADLINE_CHECKPOINT_DIR", directory));
    env.push_back(value("LOADLINE_CHECKPOINT_MARKER", checkpoint_marker(r.job)));
    // The newest checkpoint is known only where the volume is mounted; data/resume.sh names it there.
    env.push_back(value("LOADLINE_RESUME_FROM", may_resume(r) ? directory : ""));
    if (const auto& seconds = r.status.checkpoint->intervalSeconds) {
      env.push_back(value("LOADLINE_CHECKPOINT_INTERVAL_SECONDS", number(*seconds)));
    }
  }
  return env;
}

bool may_resume(const Rendering& r) {
  if (!r.status.checkpoint || !r.status.checkpoint->claim) return false;
  const auto& spec = r.job.spec.checkpoint;
  const bool own_volume = spec && spec->volume && spec->volume->claimName;
  return r.attempt.number > 1 || own_volume;
}

std::vector<std::string> user_environment(const Rendering& r) {
  std::vector<std::string> names;
  const auto index = placement::trainer_index(r.job.spec.podTemplate);
  if (!index) return names;
  const json& trainer = kube::array_at(r.job.spec.podTemplate, {"spec", "containers"})[*index];
  for (const json& ours : environment(r)) {
    for (const json& theirs : kube::array_at(trainer, {"env"})) {
      if (kube::string_at(theirs, {"name"}) == ours["name"].get<std::string>()) {
        names.push_back(ours["name"].get<std::string>());
      }
    }
  }
  return names;
}

}  // namespace loadline::controller
