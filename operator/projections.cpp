#include "operator/projections.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

namespace loadline::controller {
namespace {

using nlohmann::json;

/// Leaves only these keys of an object; anything else stays as it is.
void keep(json& object, std::initializer_list<const char*> keys) {
  if (!object.is_object()) return;
  json kept = json::object();
  for (const char* key : keys) {
    const auto found = object.find(key);
    if (found != object.end()) kept[key] = std::move(*found);
  }
  object = std::move(kept);
}

void keep_in(json& object, const char* part, std::initializer_list<const char*> keys) {
  const auto found = object.find(part);
  if (found != object.end()) keep(*found, keys);
}

void keep_each(json& object, const char* list, std::initializer_list<const char*> keys) {
  const auto found = object.find(list);
  if (found == object.end() || !found->is_array()) return;
  for (json& entry : *found) keep(entry, keys);
}

json* part(json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

constexpr std::initializer_list<const char*> kTop = {"apiVersion", "kind", "metadata", "spec", "status"};

void keep_metadata(json& object) {
  keep(object, kTop);
  if (!object.is_object()) return;
  keep_in(object, "metadata",
          {"name", "namespace", "uid", "resourceVersion", "generation", "labels", "ownerReferences", "finalizers",
           "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"});
}

}  // namespace

void project_pod(json& pod) {
  keep_metadata(pod);
  if (json* spec = part(pod, "spec")) {
    keep(*spec, {"nodeName", "containers", "initContainers", "overhead", "resources"});
    keep_each(*spec, "containers", {"name", "resources"});
    keep_each(*spec, "initContainers", {"name", "resources", "restartPolicy"});
  }
  if (json* status = part(pod, "status")) {
    keep(*status, {"phase", "reason", "message", "conditions", "containerStatuses", "initContainerStatuses"});
    keep_each(*status, "conditions", {"type", "status", "reason", "message", "lastTransitionTime"});
    keep_each(*status, "containerStatuses", {"name", "state"});
    keep_each(*status, "initContainerStatuses", {"name", "state"});
  }
}

void project_node(json& node) {
  keep_metadata(node);
  if (json* spec = part(node, "spec")) keep(*spec, {"taints", "unschedulable"});
  if (json* status = part(node, "status")) {
    keep(*status, {"allocatable", "conditions"});
    keep_each(*status, "conditions", {"type", "status", "lastTransitionTime"});
  }
}

void project_job(json& job) {
  keep_metadata(job);
  if (json* spec = part(job, "spec")) keep(*spec, {"completions", "parallelism", "suspend"});
  if (json* status = part(job, "status")) keep(*status, {"conditions"});
}

void project_config(json& config) { keep_metadata(config); }

void project_claim(json& claim) {
  keep_metadata(claim);
  if (json* spec = part(claim, "spec")) keep(*spec, {"accessModes", "resources", "storageClassName", "volumeName"});
  if (json* status = part(claim, "status")) keep(*status, {"phase"});
}

void project_volume(json& volume) {
  keep_metadata(volume);
  if (json* spec = part(volume, "spec")) keep(*spec, {"nodeAffinity", "claimRef", "capacity"});
  if (json* status = part(volume, "status")) keep(*status, {"phase"});
}

void project_namespace(json& ns) {
  keep(ns, {"apiVersion", "kind", "metadata"});
  if (ns.is_object()) keep_in(ns, "metadata", {"name", "uid", "resourceVersion", "labels"});
}

}  // namespace loadline::controller
