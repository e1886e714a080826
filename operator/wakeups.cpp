#include "operator/wakeups.h"

#include <nlohmann/json.hpp>

#include "api/names.h"
#include "operator/pool_reconciler.h"
#include "operator/resources.h"
#include "placement/facts.h"

namespace loadline::controller {
namespace {

namespace core = kube::resources;

/// Changes come in crowds (a gang starting, a node going): they are answered together.
constexpr std::chrono::milliseconds kGather{200};
constexpr std::chrono::milliseconds kPoolGather{2000};

std::string phase_of(const kube::Object& job) {
  return std::string(kube::string_at(job.json(), {"status", "phase"}).value_or(""));
}

bool finished(const kube::Object& job) {
  const std::string phase = phase_of(job);
  return phase == "Succeeded" || phase == "Failed";
}

/// Whether a pod holds something that nodes have few of.
bool holds_device(const kube::Object& pod) {
  if (!pod) return false;
  for (const auto& [name, amount] : placement::pod_facts(pod.json()).requests) {
    if (amount > 0 && name.find('/') != std::string::npos) return true;
  }
  return false;
}

/// What of a pod other jobs can feel: where it is, and whether it still counts.
std::string footprint(const kube::Object& pod) {
  if (!pod) return "";
  const auto phase = kube::string_at(pod.json(), {"status", "phase"}).value_or("");
  const bool over = phase == "Succeeded" || phase == "Failed";
  return std::string(kube::string_at(pod.json(), {"spec", "nodeName"}).value_or("")) + (over ? "/over" : "/held");
}

/// What of a job other jobs can feel: its promise.
std::string promise(const kube::Object& job) {
  if (!job) return "";
  return std::to_string(kube::int_at(job.json(), {"status", "attempt"}).value_or(0)) + phase_of(job);
}

/// Whether jobs of the namespace are followed.
bool heeded(const kube::Object& ns) { return ns && !ns.label(api::label::kIgnore); }

}  // namespace

Wakeups::Wakeups(Caches& caches, kube::WorkQueue& jobs, kube::WorkQueue& pools)
    : caches_(caches), jobs_(jobs), pools_(pools) {
  caches.listen(resources::kTrainingJobs, [this](const kube::Change& c) { on_job(c); });
  caches.listen(resources::kGPUPools, [this](const kube::Change& c) { on_pool_or_policy(c, true); });
  caches.listen(resources::kPlacementPolicies, [this](const kube::Change& c) { on_pool_or_policy(c, false); });
  caches.listen(core::kNodes, [this](const kube::Change& c) { on_node(c); });
  caches.listen(core::kPods, [this](const kube::Change& c) { on_pod(c); });
  for (const kube::Resource& child : {core::kJobs, core::kServices, core::kConfigMaps}) {
    caches.listen(child, [this](const kube::Change& c) { on_child(c); });
  }
  caches.listen(core::kNamespaces, [this](const kube::Change& c) { on_namespace(c); });
  caches.listen(core::kPersistentVolumeClaims, [this](const kube::Change& c) { on_claim(c); });
}

void Wakeups::on_job(const kube::Change& change) {
  {
    const std::lock_guard lock(mutex_);
    if (change.before && (!change.after || change.before.uid() != change.after.uid())) {
      by_uid_.erase(change.before.uid());
    }
    if (change.after) by_uid_[change.after.uid()] = change.key;
  }
  jobs_.add(change.key);
  if (promise(change.before) != promise(change.after)) {
    wake_waiting();
    wake_pools();
  }
}

void Wakeups::wake_uid(const std::string& uid) {
  kube::ObjectKey key;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_uid_.find(uid);
    if (found == by_uid_.end()) return;
    key = found->second;
  }
  jobs_.add(key);
}

void Wakeups::on_child(const kube::Change& change) {
  for (const kube::Object& object : {change.before, change.after}) {
    if (!object) continue;
    if (const auto owner = object.controller()) wake_uid(owner->uid);
  }
}

void Wakeups::on_pod(const kube::Change& change) {
  for (const kube::Object& pod : {change.before, change.after}) {
    if (!pod) continue;
    if (const auto uid = pod.label(api::label::kJobUID)) wake_uid(std::string(*uid));
  }
  const bool device = holds_device(change.after ? change.after : change.before);
  if (device && footprint(change.before) != footprint(change.after)) {
    wake_waiting();
    wake_pools();
  }
}

void Wakeups::on_claim(const kube::Change& change) {
  for (const kube::Object& job : caches_.list(resources::kTrainingJobs, change.key.ns)) {
    if (kube::string_at(job.json(), {"status", "checkpoint", "claim"}) == change.key.name ||
        phase_of(job) == "Waiting") {
      jobs_.add_after(job.key(), kGather);
    }
  }
}

void Wakeups::on_node(const kube::Change& change) {
  const auto same = [&](kube::JsonPath path) {
    return kube::object_at(change.before.json(), path) == kube::object_at(change.after.json(), path);
  };
  if (change.before && change.after && same({"spec"}) && same({"status"}) && same({"metadata", "labels"}) &&
      change.before.deleting() == change.after.deleting()) {
    return;
  }
  wake_unfinished();
  wake_pools();
}

void Wakeups::on_namespace(const kube::Change& change) {
  if (heeded(change.before) == heeded(change.after)) return;
  for (const kube::Object& job : caches_.list(resources::kTrainingJobs, change.key.name)) jobs_.add(job.key());
  // What jobs there were promised counts from now on, or no more.
  wake_waiting();
  wake_pools();
}

void Wakeups::on_pool_or_policy(const kube::Change& change, bool pool) {
  pools_.add(PoolReconciler::key(pool, change.key.name));
  // Our own status writes change nothing that placing reads.
  if (change.before && change.after && change.before.generation() == change.after.generation()) return;
  wake_unfinished();
  if (pool) wake_pools();
}

void Wakeups::wake_waiting() {
  for (const kube::Object& job : caches_.list(resources::kTrainingJobs, "")) {
    const std::string phase = phase_of(job);
    if (phase == "Waiting" || phase == "Pending" || phase == "Invalid") jobs_.add_after(job.key(), kGather);
  }
}

void Wakeups::wake_unfinished() {
  for (const kube::Object& job : caches_.list(resources::kTrainingJobs, "")) {
    if (!finished(job)) jobs_.add_after(job.key(), kGather);
  }
}

void Wakeups::wake_pools() {
  for (const kube::Object& pool : caches_.list(resources::kGPUPools, "")) {
    pools_.add_after(PoolReconciler::key(true, pool.name()), kPoolGather);
  }
}

void Wakeups::wake_everything() {
  for (const kube::Object& job : caches_.list(resources::kTrainingJobs, "")) jobs_.add(job.key());
  for (const kube::Object& pool : caches_.list(resources::kGPUPools, "")) {
    pools_.add(PoolReconciler::key(true, pool.name()));
  }
  for (const kube::Object& policy : caches_.list(resources::kPlacementPolicies, "")) {
    pools_.add(PoolReconciler::key(false, policy.name()));
  }
}

}  // namespace loadline::controller
