// An API server, a Job controller and a kubelet in a map: enough of them to play a TrainingJob's life without a
// cluster.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/names.h"
#include "base/text.h"
#include "operator/action.h"
#include "operator/decide.h"
#include "operator/observed.h"
#include "operator/resources.h"

namespace loadline::controller {

using nlohmann::json;
namespace core = kube::resources;

class World final : public Reader {
 public:
  World() { put(core::kNamespaces, {{"metadata", {{"name", "team"}, {"labels", json::object()}}}}); }

  // -- time

  TimePoint now{std::chrono::sys_days(std::chrono::year(2026) / 11 / 30)};
  void pass(std::chrono::seconds time) { now += time; }

  // -- the API server

  [[nodiscard]] kube::Object get(const kube::Resource& resource, const kube::ObjectKey& key) const override {
    const auto found = objects_.find({resource.plural, key});
    return found == objects_.end() ? kube::Object{} : kube::Object(found->second);
  }
  [[nodiscard]] std::vector<kube::Object> list(const kube::Resource& resource, const std::string& ns) const override {
    std::vector<kube::Object> out;
    for (const auto& [id, object] : objects_) {
      if (id.first == resource.plural && (ns.empty() || id.second.ns == ns)) out.emplace_back(object);
    }
    return out;
  }
  [[nodiscard]] kube::Object confirm_node(const std::string& name) const override {
    return get(core::kNodes, {"", name});
  }

  [[nodiscard]] kube::Object confirm_job(const kube::ObjectKey& key) const override {
    return job_is_gone ? kube::Object{} : get(resources::kTrainingJobs, key);
  }
  [[nodiscard]] bool in_touch() const override { return !watch_broken; }
  bool watch_broken = false;
  bool job_is_gone = false;  ///< from the server, though not from the operator's caches yet

  /// The stored document, to be edited in place by whoever plays a part of the cluster.
  json& at(const kube::Resource& resource, const kube::ObjectKey& key) { return objects_.at({resource.plural, key}); }
  [[nodiscard]] bool has(const kube::Resource& resource, const kube::ObjectKey& key) const {
    return objects_.count({resource.plural, key}) != 0;
  }
  json& put(const kube::Resource& resource, json object) {
    json& metadata = object["metadata"];
    metadata["uid"] = "uid-" + std::to_string(++uids_);
    metadata["resourceVersion"] = std::to_string(++version_);
    metadata["generation"] = 1;
    metadata["creationTimestamp"] = rfc3339(now);
    const kube::ObjectKey key{metadata.value("namespace", ""), metadata.value("name", "")};
    return objects_[{resource.plural, key}] = std::move(object);
  }
  void edit_spec(const kube::Resource& resource, const kube::ObjectKey& key, const json& merge) {
    json& object = at(resource, key);
    object["spec"].merge_patch(merge);
    object["metadata"]["generation"] = object["metadata"]["generation"].get<int>() + 1;
    touch(object);
  }
  /// Sets a label of the job's namespace; null takes it away.
  void label_namespace(const std::string& label, const json& value) {
    json& ns = at(core::kNamespaces, {"", "team"});
    ns["metadata"]["labels"].merge_patch({{label, value}});
    touch(ns);
  }
  void touch(json& object) { object["metadata"]["resourceVersion"] = std::to_string(++version_); }
  /// As `kubectl delete` does.
  void remove(const kube::Resource& resource, const kube::ObjectKey& key) {
    const auto found = objects_.find({resource.plural, key});
    if (found == objects_.end()) return;
    const json& finalizers = kube::array_at(found->second, {"metadata", "finalizers"});
    if (!finalizers.empty()) {
      found->second["metadata"]["deletionTimestamp"] = rfc3339(now);
      return touch(found->second);
    }
    const std::string uid = found->second["metadata"]["uid"];
    objects_.erase(found);
    collect_garbage(uid);
  }

  /// Carries out one action as the server would; false when the rest of the decision must not follow.
  bool carry_out(const Action& action) {
    const bool done = std::visit([this](const auto& a) { return run(a); }, action);
    if (!std::holds_alternative<Tell>(action)) {
      ++writes;
      if (after_write) after_write(*this);
    }
    return done;
  }

  // -- the operator

  kube::ObjectKey job_key{"team", "llama"};
  int writes = 0;                                 ///< actions carried out, events excluded
  std::function<void(const World&)> after_write;  ///< told after each of them
  std::vector<std::string> told;                  ///< reasons of events
  std::optional<std::chrono::milliseconds> requeue;

  Decision look(const kube::ObjectKey& key) {
    const auto seen = observe(
        *this, [&] { return cluster_facts(*this, now); }, key, now);
    if (!seen) return {};
    Observed with_log = *seen;
    with_log.log_tail = log;
    return decide(with_log);
  }
  /// Decides and acts until nothing is left to do.
  void settle() { settle(job_key); }
  void settle(const kube::ObjectKey& key) {
    for (int round = 0; round < 30; ++round) {
      const Decision decision = look(key);
      requeue = decision.requeue_after;
      if (decision.actions.empty()) return;
      for (const Action& action : decision.actions) {
        if (const auto* tell = std::get_if<Tell>(&action)) told.push_back(tell->event.reason);
        if (!carry_out(action)) break;
      }
    }
    ADD_FAILURE() << "the operator does not come to rest: " << dump(look(key));
  }
  /// And lets the gangs that it started run.
  void settle_running() {
    settle();
    run_gangs();
    settle();
  }
  static std::string dump(const Decision& decision) {
    std::string out;
    for (const Action& action : decision.actions) {
      out += describe(action) + "\n";
      if (const auto* status = std::get_if<WriteStatus>(&action)) out += status->object.dump(1) + "\n";
    }
    return out;
  }

  // -- the cluster's other parts

  std::optional<std::string> log;  ///< end of rank 0's log

  void add_node(const std::string& name, const json& labels, const std::string& gpus = "8") {
    json all = labels;
    all["kubernetes.io/hostname"] = name;
    put(core::kNodes,
        {{"metadata", {{"name", name}, {"labels", all}}},
         {"spec", json::object()},
         {"status",
          {{"allocatable", {{"cpu", "96"}, {"memory", "1300Gi"}, {"pods", "110"}, {"nvidia.com/gpu", gpus}}},
           {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}});
  }
  /// The Job controller and the scheduler: pods for Jobs that have none, on nodes that match their selector.
  void run_gangs() {
    for (const kube::Object& job : list(core::kJobs, "")) {
      const bool suspended = job.json()["spec"].value("suspend", false);
      if (pods_of(job.uid()).empty() && !finished(job) && !suspended) make_pods(job);
    }
  }
  void finish_gang(const std::string& job_name) {
    const kube::Object job = get(core::kJobs, {"team", job_name});
    for (const kube::Object& pod : pods_of(job.uid())) end_pod(pod.name(), "Succeeded", 0, "");
    add_condition(core::kJobs, job.key(), "Complete", "CompletionsReached", "");
  }
  /// One pod's trainer ends with this code; the Job controller ends the rest of the gang.
  void fail_gang(const std::string& job_name, int exit_code, const std::string& message,
                 const std::string& reason = "Error") {
    const kube::Object job = get(core::kJobs, {"team", job_name});
    bool first = true;
    for (const kube::Object& pod : pods_of(job.uid())) {
      end_pod(pod.name(), "Failed", first ? exit_code : 143, first ? message : "", first ? reason : "Error");
      first = false;
    }
    add_condition(core::kJobs, job.key(), "FailureTarget", "BackoffLimitExceeded", "Job has reached the backoff limit");
    add_condition(core::kJobs, job.key(), "Failed", "BackoffLimitExceeded", "Job has reached the backoff limit");
  }
  /// The cloud takes the machine: the Node goes, and its pods stay as they were.
  void reclaim_node(const std::string& name) { objects_.erase({"nodes", {"", name}}); }
  /// Pods that were asked to end do so (the kubelet), and those of vanished nodes are collected.
  void end_deleted_pods() {
    for (const kube::Object& pod : list(core::kPods, "")) {
      if (pod.deleting()) objects_.erase({"pods", pod.key()});
    }
  }
  /// A volume for the claim, in a zone or in none.
  void bind_claim(const std::string& name, const std::string& zone) {
    json volume = {{"metadata", {{"name", "pv-" + name}}}, {"spec", json::object()}};
    if (!zone.empty()) {
      volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = json::array(
          {{{"matchExpressions",
             json::array(
                 {{{"key", "topology.kubernetes.io/zone"}, {"operator", "In"}, {"values", json::array({zone})}}})}}});
    }
    put(core::kPersistentVolumes, std::move(volume));
    json& claim = at(core::kPersistentVolumeClaims, {"team", name});
    claim["spec"]["volumeName"] = "pv-" + name;
    claim["status"]["phase"] = "Bound";
    touch(claim);
  }
  [[nodiscard]] std::vector<kube::Object> pods_of(const std::string& job_uid) const {
    std::vector<kube::Object> out;
    for (const kube::Object& pod : list(core::kPods, "")) {
      if (pod.controller() && pod.controller()->uid == job_uid) out.push_back(pod);
    }
    return out;
  }
  void end_pod(const std::string& name, const std::string& phase, int exit_code, const std::string& message,
               const std::string& reason = "Error") {
    json& pod = at(core::kPods, {"team", name});
    pod["status"]["phase"] = phase;
    pod["status"]["containerStatuses"] = json::array(
        {{{"name", "trainer"},
          {"state", {{"terminated", {{"exitCode", exit_code}, {"reason", reason}, {"message", message}}}}}}});
    touch(pod);
  }
  void add_condition(const kube::Resource& resource, const kube::ObjectKey& key, const std::string& type,
                     const std::string& reason, const std::string& message) {
    json& object = at(resource, key);
    object["status"]["conditions"].push_back({{"type", type},
                                              {"status", "True"},
                                              {"reason", reason},
                                              {"message", message},
                                              {"lastTransitionTime", rfc3339(now)}});
    touch(object);
  }

  // -- what tests ask

  [[nodiscard]] json status(const kube::ObjectKey& key) const {
    return kube::object_at(get(resources::kTrainingJobs, key).json(), {"status"});
  }
  [[nodiscard]] json status() const { return status(job_key); }
  [[nodiscard]] std::string phase() const { return status().value("phase", ""); }
  [[nodiscard]] json condition(const std::string& type) const { return condition(job_key, type); }
  [[nodiscard]] json condition(const kube::ObjectKey& key, const std::string& type) const {
    const json all = status(key);
    for (const json& c : kube::array_at(all, {"conditions"})) {
      if (c.value("type", "") == type) return c;
    }
    return json::object();
  }
  [[nodiscard]] std::set<std::string> names(const kube::Resource& resource) const {
    std::set<std::string> out;
    for (const kube::Object& object : list(resource, "")) out.insert(object.name());
    return out;
  }
  /// Everything that a user could tell apart: no uids, versions and times.
  [[nodiscard]] json end_state() const {
    json out = json::object();
    for (const auto& [id, object] : objects_) {
      if (id.first == "nodes" || id.first == "persistentvolumes") continue;
      out[id.first + "/" + id.second.name] = without_identity(object);
    }
    return out;
  }

 private:
  using Id = std::pair<std::string, kube::ObjectKey>;

  static json without_identity(json value) {
    if (value.is_object()) {
      for (const char* key :
           {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "lastTransitionTime", "startTime",
            "endTime", "runningTime", "completionTime", "updated", "jobUID", "loadline.dev/job-uid"}) {
        value.erase(key);
      }
      for (auto& [key, child] : value.items()) child = without_identity(child);
    } else if (value.is_array()) {
      for (json& child : value) child = without_identity(child);
    }
    return value;
  }
  static bool finished(const kube::Object& job) {
    return !kube::array_at(job.json(), {"status", "conditions"}).empty();
  }
  void make_pods(const kube::Object& job) {
    const json& pod_template = job.json()["spec"]["template"];
    const auto count = job.json()["spec"]["completions"].get<int>();
    std::vector<std::string> free = free_nodes(pod_template);
    for (int i = 0; i < count; ++i) {
      json pod = pod_template;
      pod["metadata"]["name"] = job.name() + "-" + std::to_string(i) + "-x";
      pod["metadata"]["namespace"] = job.ns();
      pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "batch/v1"},
                                                         {"kind", "Job"},
                                                         {"name", job.name()},
                                                         {"uid", job.uid()},
                                                         {"controller", true}}});
      const bool scheduled = static_cast<std::size_t>(i) < free.size();
      if (scheduled) pod["spec"]["nodeName"] = free[static_cast<std::size_t>(i)];
      pod["status"]["phase"] = scheduled ? "Running" : "Pending";
      put(core::kPods, std::move(pod));
    }
  }
  [[nodiscard]] std::vector<std::string> free_nodes(const json& pod_template) const {
    std::set<std::string> busy;
    for (const kube::Object& pod : list(core::kPods, "")) {
      const std::string phase = pod.json()["status"].value("phase", "");
      if (phase != "Succeeded" && phase != "Failed") busy.insert(pod.json()["spec"].value("nodeName", ""));
    }
    const auto wanted = kube::strings_at(pod_template, {"spec", "nodeSelector"});
    std::vector<std::string> out;
    for (const kube::Object& node : list(core::kNodes, "")) {
      const auto labels = kube::strings_at(node.json(), {"metadata", "labels"});
      const bool matches = std::all_of(wanted.begin(), wanted.end(), [&](const auto& want) {
        const auto found = labels.find(want.first);
        return found != labels.end() && found->second == want.second;
      });
      if (matches && busy.count(node.name()) == 0) out.push_back(node.name());
    }
    return out;
  }
  /// Background deletion: what the object owned goes; pods get their time to end.
  void collect_garbage(const std::string& uid) {
    std::vector<std::pair<Id, bool>> owned;
    for (const auto& [id, object] : objects_) {
      for (const json& owner : kube::array_at(object, {"metadata", "ownerReferences"})) {
        if (owner.value("uid", "") == uid) owned.push_back({id, id.first == "pods"});
      }
    }
    for (const auto& [id, pod] : owned) {
      if (!pod) {
        const std::string child = objects_.at(id)["metadata"]["uid"];
        objects_.erase(id);
        collect_garbage(child);
        continue;
      }
      const std::string phase = objects_.at(id)["status"].value("phase", "");
      if (phase == "Succeeded" || phase == "Failed") {
        objects_.erase(id);
      } else if (!objects_.at(id)["metadata"].contains("deletionTimestamp")) {
        objects_.at(id)["metadata"]["deletionTimestamp"] = rfc3339(now);
        touch(objects_.at(id));
      }
    }
  }

  bool run(const Create& a) {
    const kube::ObjectKey key{a.object["metadata"].value("namespace", ""), a.object["metadata"].value("name", "")};
    const kube::Object taken = get(a.resource, key);
    if (taken) {
      const auto owner = taken.controller();
      return owner ? owner->uid == a.owner_uid : taken.label(api::label::kJobUID) == a.owner_uid;
    }
    created.push_back(key.name);
    put(a.resource, a.object);
    return true;
  }
  bool run(const WriteStatus& a) {
    const json& metadata = a.object["metadata"];
    const kube::ObjectKey key{metadata.value("namespace", ""), metadata.value("name", "")};
    if (!has(a.resource, key)) return true;
    json& stored = at(a.resource, key);
    if (stored["metadata"]["resourceVersion"] != metadata["resourceVersion"]) return false;
    stored["status"] = a.object["status"];
    touch(stored);
    return true;
  }
  bool run(const MergePatch& a) {
    if (!has(a.resource, a.key)) return true;
    json& stored = at(a.resource, a.key);
    json patch = a.patch;
    if (patch["metadata"].value("resourceVersion", "") != stored["metadata"]["resourceVersion"]) return false;
    stored.merge_patch(patch);
    touch(stored);
    if (stored["metadata"].contains("deletionTimestamp") &&
        kube::array_at(stored, {"metadata", "finalizers"}).empty()) {
      stored["metadata"].erase("finalizers");
      remove(a.resource, a.key);
    }
    return true;
  }
  bool run(const Remove& a) {
    if (has(a.resource, a.key) && at(a.resource, a.key)["metadata"]["uid"] == a.uid) remove(a.resource, a.key);
    return true;
  }
  bool run(const Tell& /*a*/) { return true; }

  std::map<Id, json> objects_;
  int uids_ = 0, version_ = 0;

 public:
  std::vector<std::string> created;  ///< names of children in the order of their making
};

}  // namespace loadline::controller
