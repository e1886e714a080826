// The attempt's Job: the user's pod template with what the layout and the pool need put in. Values the user set stay,
// except the GPU count, which is the layout's.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/names.h"
#include "estimator/checkpoint_interval.h"
#include "kube/json_read.h"
#include "operator/embedded.h"
#include "operator/names.h"
#include "operator/render.h"
#include "placement/job_check.h"

namespace loadline::controller {
namespace {

using nlohmann::json;

constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";
constexpr const char* kPlanVolume = "loadline-plan";
constexpr const char* kCheckpointVolume = "loadline-checkpoint";
/// A silent node costs a whole gang: evict after a minute instead of the API server's default of five.
constexpr int kUnreachableSeconds = 60;

json& child(json& parent, const char* key, json::value_t kind) {
  json& value = parent[key];
  if (value.type() != kind) value = json(kind);
  return value;
}

void set_default(json& object, const char* key, const json& value) {
  if (!object.contains(key)) object[key] = value;
}

void merge_missing(json& object, const json& values) {
  for (const auto& [key, value] : values.items()) {
    if (!object.contains(key)) object[key] = value;
  }
}

bool has_entry(const json& list, const char* key, const std::string& name) {
  return std::any_of(list.begin(), list.end(), [&](const json& e) { return kube::string_at(e, {key}) == name; });
}

bool has_checkpoint(const Rendering& r) { return r.status.checkpoint && r.status.checkpoint->claim; }

/// GPUs of the template, whatever pool it was written for.
std::vector<std::string> gpu_names(const json& amounts) {
  std::vector<std::string> out;
  for (const auto& [name, amount] : amounts.items()) {
    if (placement::is_gpu(name)) out.push_back(name);
  }
  return out;
}

void add_resources(json& trainer, const Rendering& r) {
  const auto& layout = *r.status.placement->layout;
  const auto extra = r.pool.extra_for(layout.nodes, layout.gpusPerNode);
  json& resources = child(trainer, "resources", json::value_t::object);
  for (const char* part : {"requests", "limits"}) {
    json& amounts = child(resources, part, json::value_t::object);
    for (const std::string& name : gpu_names(amounts)) amounts.erase(name);
    amounts[r.pool.resource] = std::to_string(layout.gpusPerNode);
    for (const auto& [name, count] : extra) set_default(amounts, name.c_str(), std::to_string(count));
  }
}

void add_environment(json& trainer, const Rendering& r) {
  json& env = child(trainer, "env", json::value_t::array);
  // Ours first: the user's own variables may refer to them.
  json all = json::array();
  for (const json& entry : environment(r)) {
    if (!has_entry(env, "name", entry["name"].get<std::string>())) all.push_back(entry);
  }
  for (json& entry : env) all.push_back(std::move(entry));
  env = std::move(all);
}

/// Lets data/resume.sh find the newest complete checkpoint before the user's command. Without a command the image's own
/// entrypoint runs, which is not ours to know; a LOADLINE_RESUME_FROM of the user's is the last word.
void add_resume(json& trainer, const Rendering& r) {
  const json& command = kube::array_at(trainer, {"command"});
  if (command.empty() || !may_resume(r)) return;
  if (has_entry(kube::array_at(trainer, {"env"}), "name", "LOADLINE_RESUME_FROM")) return;
  // The kubelet expands $(NAME) in a command and leaves alone what names no variable, so the script's $( ) stays.
  json words = json::array({"/bin/sh", "-c", std::string(data::resume_sh), "resume"});
  words.insert(words.end(), command.begin(), command.end());
  trainer["command"] = std::move(words);
}

void add_volumes(json& pod, json& trainer, const Rendering& r) {
  json& volumes = child(pod, "volumes", json::value_t::array);
  json& mounts = child(trainer, "volumeMounts", json::value_t::array);
  const auto add = [&](const char* name, const std::string& path, json source, bool read_only) {
    if (has_entry(mounts, "mountPath", path)) return;  // the user mounts something of their own there
    source["name"] = name;
    volumes.push_back(std::move(source));
    json mount = {{"name", name}, {"mountPath", path}};
    if (read_only) mount["readOnly"] = true;
    mounts.push_back(std::move(mount));
  };
  add(kPlanVolume, kPlanDirectory, {{"configMap", {{"name", plan_config_name(r.job.metadata.name, r.attempt.number)}}}},
      true);
  if (has_checkpoint(r)) {
    add(kCheckpointVolume, checkpoint_directory(r.job),
        {{"persistentVolumeClaim", {{"claimName", *r.status.checkpoint->claim}}}}, false);
  }
}

json toleration(const api::Toleration& t) {
  json out = json::object();
  if (t.key) out["key"] = *t.key;
  if (t.op) out["operator"] = *t.op;
  if (t.value) out["value"] = *t.value;
  if (t.effect) out["effect"] = *t.effect;
  if (t.tolerationSeconds) out["tolerationSeconds"] = *t.tolerationSeconds;
  return out;
}

void add_tolerations(json& pod, const Rendering& r) {
  json& list = child(pod, "tolerations", json::value_t::array);
  for (const api::Toleration& t : r.pool.tolerations) {
    json entry = toleration(t);
    if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(std::move(entry));
  }
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    if (has_entry(list, "key", key)) continue;
    list.push_back(
        {{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", kUnreachableSeconds}});
  }
}

void add_node_selector(json& pod, const Rendering& r) {
  json& selector = child(pod, "nodeSelector", json::value_t::object);
  for (const auto& [key, value] : r.pool.node_selector) set_default(selector, key.c_str(), value);
  if (r.status.placement->zone && !r.status.placement->zone->empty()) {
    set_default(selector, kZoneLabel, *r.status.placement->zone);
  }
}

/// Node selector terms are alternatives, so the exclusion goes into each.
void add_avoidance(json& pod, const Rendering& r) {
  if (r.avoided_nodes.empty()) return;
  const json exclusion = {{"key", "kubernetes.io/hostname"}, {"operator", "NotIn"}, {"values", r.avoided_nodes}};
  json& required = child(child(child(pod, "affinity", json::value_t::object), "nodeAffinity", json::value_t::object),
                         "requiredDuringSchedulingIgnoredDuringExecution", json::value_t::object);
  json& terms = child(required, "nodeSelectorTerms", json::value_t::array);
  if (terms.empty()) terms.push_back(json::object());
  for (json& term : terms) {
    if (term.is_object()) child(term, "matchExpressions", json::value_t::array).push_back(exclusion);
  }
}

/// One write of a checkpoint and half as much again, and half a minute for everything else.
std::int64_t grace_seconds(const Rendering& r) {
  constexpr double kOther = 30, kShare = 1.5;
  constexpr std::int64_t kLeast = 60, kMost = 3600;
  const double mib = static_cast<double>(r.status.checkpoint ? r.status.checkpoint->checkpointMiB.value_or(0) : 0);
  const double speed = r.pool.write_mib_per_s.value_or(estimator::kAssumedWriteMiBps);
  const double seconds = speed > 0 ? std::ceil(mib / speed * kShare + kOther) : kOther;
  return std::clamp(static_cast<std::int64_t>(std::min(seconds, 1e6)), kLeast, kMost);
}

/// The template's own labels and annotations stay; ours win where they say the same thing.
json pod_metadata(const json& pod_template, const Rendering& r) {
  json metadata = json::object();
  for (const char* part : {"labels", "annotations"}) {
    const json& given = kube::object_at(pod_template, {"metadata", part});
    if (!given.empty()) metadata[part] = given;
  }
  child(metadata, "labels", json::value_t::object).update(attempt_labels(r));
  // Voluntary disruption would end the whole gang.
  merge_missing(child(metadata, "annotations", json::value_t::object),
                {{"karpenter.sh/do-not-disrupt", "true"}, {"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"}});
  return metadata;
}

json pod_spec(const json& pod_template, const Rendering& r) {
  json pod = kube::object_at(pod_template, {"spec"});
  pod["restartPolicy"] = "Never";  // what podFailurePolicy asks for
  pod["subdomain"] = service_name(r.job.metadata.name);
  set_default(pod, "terminationGracePeriodSeconds", grace_seconds(r));
  add_node_selector(pod, r);
  add_tolerations(pod, r);
  add_avoidance(pod, r);
  const auto index = placement::trainer_index(pod_template);
  if (!index) return pod;
  json& trainer = pod["containers"][*index];
  add_resume(trainer, r);
  add_environment(trainer, r);
  add_resources(trainer, r);
  add_volumes(pod, trainer, r);
  // The end of the log becomes the termination message: it says why, also when the log is gone.
  set_default(trainer, "terminationMessagePolicy", "FallbackToLogsOnError");
  return pod;
}

}  // namespace

std::optional<std::string> trainer_memory_limit(const json& pod_template) {
  const auto index = placement::trainer_index(pod_template);
  if (!index) return std::nullopt;
  const json& trainer = kube::array_at(pod_template, {"spec", "containers"})[*index];
  const auto limit = kube::string_at(trainer, {"resources", "limits", "memory"});
  return limit ? std::optional<std::string>(*limit) : std::nullopt;
}

json render_job(const Rendering& r) {
  const std::int64_t nodes = r.status.placement->layout->nodes;
  json labels = attempt_labels(r);
  return {
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata",
       {{"name", attempt_job_name(r.job.metadata.name, r.attempt.number)},
        {"namespace", r.job.metadata.namespaceName},
        {"labels", labels},
        {"ownerReferences", json::array({owner_reference(r.job)})}}},
      {"spec",
       {{"suspend", true},  // keep_children() starts it
        {"completionMode", "Indexed"},
        {"completions", nodes},
        {"parallelism", nodes},
        {"backoffLimit", 0},
        {"podReplacementPolicy", "Failed"},
        {"podFailurePolicy",
         {{"rules",
           json::array({{{"action", "FailJob"},
                         {"onPodConditions", json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}}})}}},
        {"template",
         {{"metadata", pod_metadata(r.job.spec.podTemplate, r)}, {"spec", pod_spec(r.job.spec.podTemplate, r)}}}}}};
}

}  // namespace loadline::controller
