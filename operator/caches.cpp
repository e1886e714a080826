#include "operator/caches.h"

#include <algorithm>
#include <array>
#include <compare>
#include <nlohmann/json.hpp>

#include "api/names.h"
#include "base/text.h"
#include "operator/projections.h"
#include "operator/resources.h"

namespace loadline::controller {
namespace {

namespace core = kube::resources;

/// What cluster_facts() reads, by plural.
constexpr std::array kFacts{"trainingjobs", "gpupools", "placementpolicies", "namespaces", "nodes", "pods"};

struct Watched {
  kube::Resource resource;
  kube::Store::Projection projection;
  std::string label_selector;
};

/// Children are watched by our label; pods, nodes and claims all, because others use GPUs and claims too.
std::vector<Watched> watched() {
  const std::string ours = api::label::kJobUID;
  return {{resources::kTrainingJobs, {}, ""},
          {resources::kGPUPools, {}, ""},
          {resources::kPlacementPolicies, {}, ""},
          {core::kNamespaces, project_namespace, ""},
          {core::kNodes, project_node, ""},
          {core::kPods, project_pod, ""},
          {core::kJobs, project_job, ours},
          {core::kServices, project_config, ""},
          {core::kConfigMaps, project_config, ours},
          {core::kPersistentVolumeClaims, project_claim, ""},
          {core::kPersistentVolumes, project_volume, ""}};
}

}  // namespace

Caches::Caches(kube::Client& client) : client_(client) {
  for (Watched& w : watched()) {
    Entry made;
    made.store = std::make_unique<kube::Store>(w.resource, w.projection);
    kube::ReflectorOptions options;
    options.label_selector = w.label_selector;
    made.reflector = std::make_unique<kube::Reflector>(client, *made.store, options);
    entries_.emplace(w.resource.plural, std::move(made));
  }
}

Caches::~Caches() { stop(); }

const Caches::Entry& Caches::entry(const kube::Resource& resource) const { return entries_.at(resource.plural); }

void Caches::listen(const kube::Resource& resource, kube::Store::Listener listener) {
  Entry& found = entries_.at(resource.plural);
  found.listeners.push_back(found.store->listen(std::move(listener)));
}

void Caches::start() {
  for (auto& [plural, found] : entries_) found.reflector->start();
}

void Caches::stop() {
  for (auto& [plural, found] : entries_) found.reflector->stop();
}

bool Caches::synced() const { return missing().empty(); }

std::string Caches::missing() const {
  std::vector<std::string> out;
  for (const auto& [plural, found] : entries_) {
    if (!found.store->synced()) out.push_back(plural);
  }
  return join(out, ", ");
}

kube::Object Caches::newest(const kube::Object& stored, const kube::ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto written = written_jobs_.find(key);
  if (written == written_jobs_.end()) return stored;
  const kube::Object& ours = written->second;
  const auto order = kube::compare_versions(stored.resource_version(), ours.resource_version());
  // What takes the last finalizer away deletes the job, and is answered with the version from before.
  const bool behind =
      stored && stored.uid() == ours.uid() && (std::is_lt(order) || (std::is_eq(order) && ours.deleting()));
  if (behind) return ours;
  written_jobs_.erase(written);
  return stored;
}

kube::Object Caches::get(const kube::Resource& resource, const kube::ObjectKey& key) const {
  kube::Object stored = entry(resource).store->get(key);
  return resource == resources::kTrainingJobs ? newest(stored, key) : stored;
}

std::vector<kube::Object> Caches::list(const kube::Resource& resource, const std::string& ns) const {
  const kube::Store& store = *entry(resource).store;
  std::vector<kube::Object> out = ns.empty() ? store.list() : store.list_namespace(ns);
  if (resource == resources::kTrainingJobs) {
    for (kube::Object& object : out) object = newest(object, object.key());
  }
  return out;
}

kube::Object Caches::confirm_node(const std::string& name) const {
  const auto answer = client_.get(core::kNodes, {"", name});
  if (answer) return *answer;
  if (answer.error().not_found()) return {};
  // Unknown is not gone: a node that well may be there has no conditions, and so counts as well.
  return kube::Object({{"kind", "Node"}, {"metadata", {{"name", name}}}});
}

kube::Object Caches::confirm_job(const kube::ObjectKey& key) const {
  const auto answer = client_.get(resources::kTrainingJobs, key);
  if (answer) return *answer;
  return answer.error().not_found() ? kube::Object{} : get(resources::kTrainingJobs, key);
}

void Caches::wrote(const kube::Resource& resource, const kube::Object& object) {
  const auto found = entries_.find(resource.plural);
  if (found == entries_.end()) return;
  if (resource == resources::kTrainingJobs) {
    const std::lock_guard lock(mutex_);
    written_jobs_[object.key()] = found->second.store->project(object.json());
    ++writes_;
  } else {
    found->second.store->expect_at_least(object.key(), object.resource_version());
  }
}

kube::Freshness Caches::freshness(const kube::Resource& resource, const kube::ObjectKey& key) {
  return entry(resource).store->freshness(key);
}

bool Caches::in_touch() const {
  return std::all_of(kFacts.begin(), kFacts.end(),
                     [this](const char* plural) { return entries_.at(plural).reflector->in_touch(); });
}

std::string Caches::facts_version() const {
  std::string version;
  for (const char* plural : kFacts) {
    version += entries_.at(plural).store->resource_version() + "/";
  }
  const std::lock_guard lock(mutex_);
  return version + std::to_string(writes_);
}

}  // namespace loadline::controller
