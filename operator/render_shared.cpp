// Children that all attempts share, and what all children carry.

#include <nlohmann/json.hpp>

#include "api/names.h"
#include "base/saturating.h"
#include "base/text.h"
#include "operator/names.h"
#include "operator/render.h"

namespace loadline::controller {

using nlohmann::json;

std::string checkpoint_directory(const api::TrainingJob& job) {
  const auto& checkpoint = job.spec.checkpoint;
  return checkpoint ? checkpoint->path.value_or("/checkpoints") : "/checkpoints";
}

std::string checkpoint_marker(const api::TrainingJob& job) {
  const auto& checkpoint = job.spec.checkpoint;
  return checkpoint ? checkpoint->completeMarker.value_or(".complete") : ".complete";
}

json job_labels(const api::TrainingJob& job) {
  return {{api::label::kManagedBy, "loadline"},
          {api::label::kJobName, stem(job.metadata.name)},
          {api::label::kJobUID, job.metadata.uid}};
}

json attempt_labels(const Rendering& r) {
  json labels = job_labels(r.job);
  labels[api::label::kAttempt] = std::to_string(r.attempt.number);
  // A pool is named as freely as any object; a label value is shorter.
  if (r.attempt.pool.size() <= 63) labels[api::label::kPool] = r.attempt.pool;
  return labels;
}

json owner_reference(const api::TrainingJob& job) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", api::TrainingJob::kKind},
          {"name", job.metadata.name},
          {"uid", job.metadata.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

json render_service(const Rendering& r) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata",
           {{"name", service_name(r.job.metadata.name)},
            {"namespace", r.job.metadata.namespaceName},
            {"labels", job_labels(r.job)},
            {"ownerReferences", json::array({owner_reference(r.job)})}}},
          {"spec",
           {{"clusterIP", "None"},
            // Ranks look each other up before any of them can be ready.
            {"publishNotReadyAddresses", true},
            {"selector", {{api::label::kJobUID, r.job.metadata.uid}}},
            {"ports", json::array({{{"name", "rendezvous"}, {"port", kMasterPort}, {"protocol", "TCP"}}})}}}};
}

json render_claim(const api::TrainingJob& job, const placement::CheckpointPlan& plan) {
  json spec = {{"accessModes", plan.access_modes},
               {"resources", {{"requests", {{"storage", std::to_string(ceil_div(plan.bytes, kGiB)) + "Gi"}}}}}};
  // Absent means the cluster's default class; the empty string means none, and only the user may say so.
  if (plan.storage_class) spec["storageClassName"] = *plan.storage_class;
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"metadata", {{"name", plan.claim}, {"namespace", job.metadata.namespaceName}, {"labels", job_labels(job)}}},
          {"spec", std::move(spec)}};
}

}  // namespace loadline::controller
