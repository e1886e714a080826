#include "webhook/cluster_view.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "api/codec.h"
#include "api/names.h"
#include "base/text.h"

namespace loadline::webhook {
namespace {

using nlohmann::json;

kube::Resource ours(const char* plural, const char* kind, bool namespaced) {
  return {api::kGroup, api::kVersion, plural, kind, namespaced};
}

void keep(json& object, std::initializer_list<const char*> fields) {
  if (!object.is_object()) return;
  json kept = json::object();
  for (const char* field : fields) {
    if (const auto found = object.find(field); found != object.end()) kept[field] = std::move(*found);
  }
  object = std::move(kept);
}

void keep_in(json& object, const char* field, std::initializer_list<const char*> fields) {
  if (object.is_object() && object.contains(field)) keep(object[field], fields);
}

void keep_resources(json& pod_spec, const char* list) {
  if (!pod_spec.is_object() || !pod_spec.contains(list) || !pod_spec[list].is_array()) return;
  for (json& container : pod_spec[list]) keep(container, {"resources", "restartPolicy"});
}

template <class Kind, class Parse>
std::vector<Kind> read_all(const kube::Store& store, const Parse& parse) {
  std::vector<Kind> all;
  for (const kube::Object& object : store.list()) {
    Result<Kind> read = parse(object.json(), api::UnknownFields::Ignore);
    if (read) {
      all.push_back(std::move(*read));
    } else {
      spdlog::debug("{} {} is left out: {}", Kind::kKind, to_string(object.key()), read.error().message);
    }
  }
  return all;
}

}  // namespace

void keep_placement_part_of_pod(json& pod) {
  keep(pod, {"apiVersion", "kind", "metadata", "spec", "status"});
  keep_in(pod, "metadata", {"name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences"});
  keep_in(pod, "status", {"phase"});
  keep_in(pod, "spec", {"nodeName", "containers", "initContainers", "overhead", "resources"});
  if (!pod.contains("spec")) return;
  keep_resources(pod["spec"], "containers");
  keep_resources(pod["spec"], "initContainers");
}

void keep_placement_part_of_node(json& node) {
  keep(node, {"apiVersion", "kind", "metadata", "spec", "status"});
  keep_in(node, "metadata", {"name", "uid", "resourceVersion", "labels", "deletionTimestamp"});
  keep_in(node, "spec", {"taints", "unschedulable"});
  keep_in(node, "status", {"allocatable", "conditions"});
}

ClusterView::ClusterView(kube::Client& client)
    : nodes_(kube::resources::kNodes, keep_placement_part_of_node),
      pods_(kube::resources::kPods, keep_placement_part_of_pod),
      pools_(ours(api::GPUPool::kPlural, api::GPUPool::kKind, false)),
      policies_(ours(api::PlacementPolicy::kPlural, api::PlacementPolicy::kKind, false)),
      jobs_(ours(api::TrainingJob::kPlural, api::TrainingJob::kKind, true)) {
  for (kube::Store* store : {&nodes_, &pods_, &pools_, &policies_, &jobs_}) {
    kube::ReflectorOptions options;
    // Ended pods hold nothing, and there can be many of them.
    if (store == &pods_) options.field_selector = "status.phase!=Succeeded,status.phase!=Failed";
    subscriptions_.push_back(store->listen([this](const kube::Change&) { ++changes_; }));
    reflectors_.push_back(std::make_unique<kube::Reflector>(client, *store, options));
  }
}

void ClusterView::start() {
  for (const auto& reflector : reflectors_) reflector->start();
}

void ClusterView::stop() {
  for (const auto& reflector : reflectors_) reflector->stop();
}

std::shared_ptr<const Snapshot> ClusterView::snapshot() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  const std::uint64_t changes = changes_;
  const bool current = latest_ != nullptr && latest_->complete && changes == latest_changes_;
  if (latest_ != nullptr && (current || now - latest_made_ < kStale) && now - latest_made_ < std::chrono::minutes(1)) {
    return latest_;
  }
  latest_ = std::make_shared<const Snapshot>(make());
  latest_changes_ = changes;
  latest_made_ = now;
  return latest_;
}

Snapshot ClusterView::make() const {
  Snapshot snapshot;
  snapshot.now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  snapshot.complete = waiting_for().empty();
  for (const kube::Object& node : nodes_.list()) snapshot.nodes.push_back(placement::node_facts(node.json()));
  std::vector<placement::PodFacts> pods;
  for (const kube::Object& pod : pods_.list()) pods.push_back(placement::pod_facts(pod.json()));
  snapshot.inventory =
      placement::inventory_of(read_all<api::GPUPool>(pools_, api::parse_gpu_pool), snapshot.nodes, pods, snapshot.now);
  snapshot.policies = read_all<api::PlacementPolicy>(policies_, api::parse_placement_policy);
  snapshot.ledger = placement::ledger_of(read_all<api::TrainingJob>(jobs_, api::parse_training_job));
  return snapshot;
}

std::string ClusterView::waiting_for() const {
  std::vector<std::string> missing;
  for (const CacheState& cache : caches()) {
    if (!cache.synced) missing.push_back(cache.resource);
  }
  return missing.empty() ? std::string() : "not listed yet: " + join(missing, ", ");
}

std::vector<ClusterView::CacheState> ClusterView::caches() const {
  std::vector<CacheState> states;
  for (const kube::Store* store : stores()) {
    states.push_back({store->resource().plural, store->synced(), store->size()});
  }
  return states;
}

}  // namespace loadline::webhook
