#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "api/names.h"
#include "api/reader.h"
#include "operator/names.h"
#include "operator/observed.h"
#include "operator/resources.h"
#include "placement/facts.h"

namespace loadline::controller {
namespace {

namespace core = kube::resources;

bool owned_by(const kube::Object& object, const std::string& uid) {
  const auto owner = object.controller();
  return owner && owner->uid == uid;
}

std::vector<kube::Object> owned(const Reader& reader, const kube::Resource& resource, const std::string& ns,
                                const std::string& uid) {
  std::vector<kube::Object> out;
  for (kube::Object& object : reader.list(resource, ns)) {
    if (owned_by(object, uid)) out.push_back(std::move(object));
  }
  return out;
}

/// Pods outlive their Job for a moment when it is deleted, so they are known by label.
std::vector<kube::Object> pods_of(const Reader& reader, const std::string& ns, const std::string& uid) {
  std::vector<kube::Object> out;
  for (kube::Object& pod : reader.list(core::kPods, ns)) {
    if (pod.label(api::label::kJobUID) == uid) out.push_back(std::move(pod));
  }
  return out;
}

/// Spec and status each for itself: a spec that cannot be read needs a status to say so in, and a status that a foreign
/// hand wrote is started anew.
api::TrainingJob typed(const kube::Object& stored) {
  api::TrainingJob job;
  nlohmann::json document = stored.json();
  document.erase("status");
  if (auto parsed = api::parse_training_job(document, api::UnknownFields::Ignore)) job = *std::move(parsed);
  api::Reader reader(api::UnknownFields::Ignore);
  api::TrainingJobStatus status;
  reader.read(kube::object_at(stored.json(), {"status"}), status);
  if (std::move(reader).take_errors().empty()) job.status = std::move(status);
  job.metadata.name = stored.name();
  job.metadata.namespaceName = stored.ns();
  job.metadata.uid = stored.uid();
  return job;
}

void read_claim(const Reader& reader, Observed& seen) {
  seen.claim = reader.get(core::kPersistentVolumeClaims, {seen.stored.ns(), claim_name(seen.job)});
  if (!seen.claim) return;
  const auto volume = kube::string_at(seen.claim.json(), {"spec", "volumeName"});
  if (volume && !volume->empty()) seen.volume = reader.get(core::kPersistentVolumes, {"", std::string(*volume)});
}

void read_nodes(const Reader& reader, Observed& seen) {
  for (const kube::Object& pod : seen.pods) {
    const std::string name(kube::string_at(pod.json(), {"spec", "nodeName"}).value_or(""));
    if (name.empty() || seen.nodes.count(name) != 0) continue;
    kube::Object node = reader.get(core::kNodes, {"", name});
    if (!node) node = reader.confirm_node(name);
    if (node) seen.nodes.emplace(name, std::move(node));
  }
}

/// A gang that was started has lost a child: the garbage collector may be at work because the job is gone, which its
/// own watch has still to say. What would be made anew then would have a dead owner, and a name that is in the way.
bool lost_a_child(const Observed& seen) {
  const auto& attempts = seen.job.status.attempts;
  if (attempts.empty() || attempts.back().cause || !attempts.back().jobUID) return false;
  const std::string plan = plan_config_name(seen.job.metadata.name, attempts.back().number);
  const auto is_plan = [&](const kube::Object& config) { return config.name() == plan; };
  return !seen.service || std::none_of(seen.configs.begin(), seen.configs.end(), is_plan);
}

}  // namespace

std::string claim_name(const api::TrainingJob& job) {
  const auto& checkpoint = job.spec.checkpoint;
  if (checkpoint && checkpoint->volume && checkpoint->volume->claimName) return *checkpoint->volume->claimName;
  return checkpoint_claim_name(job.metadata.name);
}

bool is_ours(const Reader& reader, const kube::Object& job) {
  const auto manager = kube::string_at(job.json(), {"spec", "managedBy"});
  if (manager && !manager->empty() && *manager != kManagerName) return false;
  const kube::Object ns = reader.get(core::kNamespaces, {"", job.ns()});
  return ns && !ns.label(api::label::kIgnore);
}

std::shared_ptr<const ClusterFacts> cluster_facts(const Reader& reader, TimePoint now) {
  std::vector<api::GPUPool> pools;
  for (const kube::Object& object : reader.list(resources::kGPUPools, "")) {
    if (auto pool = api::parse_gpu_pool(object.json(), api::UnknownFields::Ignore)) pools.push_back(*std::move(pool));
  }
  std::vector<placement::NodeFacts> nodes;
  for (const kube::Object& node : reader.list(core::kNodes, "")) nodes.push_back(placement::node_facts(node.json()));
  std::vector<placement::PodFacts> pods;
  for (const kube::Object& pod : reader.list(core::kPods, "")) pods.push_back(placement::pod_facts(pod.json()));

  auto facts = std::make_shared<ClusterFacts>();
  for (const kube::Object& object : reader.list(resources::kPlacementPolicies, "")) {
    auto policy = api::parse_placement_policy(object.json(), api::UnknownFields::Ignore);
    if (policy) facts->policies.push_back(*std::move(policy));
  }
  // What another hand runs, or nobody follows any more, promises nothing: its status may never end the attempt. Its
  // pods count like any other's.
  std::vector<api::TrainingJob> jobs;
  for (const kube::Object& object : reader.list(resources::kTrainingJobs, "")) {
    if (is_ours(reader, object)) jobs.push_back(typed(object));
  }
  facts->inventory = placement::inventory_of(pools, nodes, pods, now);
  facts->ledger = placement::ledger_of(jobs);
  return facts;
}

std::optional<Observed> observe(const Reader& reader, const Facts& facts, const kube::ObjectKey& key, TimePoint now) {
  Observed seen;
  seen.now = now;
  // What is read after a yes is at least as new as the yes; facts read before it may be from before the watch broke.
  seen.in_touch = reader.in_touch();
  seen.cluster = facts();
  seen.stored = reader.get(resources::kTrainingJobs, key);
  if (!seen.stored) return std::nullopt;
  seen.ours = is_ours(reader, seen.stored);
  if (!seen.ours) return seen;
  seen.job = typed(seen.stored);
  const std::string& uid = seen.stored.uid();
  seen.jobs = owned(reader, core::kJobs, key.ns, uid);
  seen.configs = owned(reader, core::kConfigMaps, key.ns, uid);
  seen.pods = pods_of(reader, key.ns, uid);
  seen.service = reader.get(core::kServices, {key.ns, service_name(key.name)});
  if (lost_a_child(seen) && reader.confirm_job(key).uid() != uid) return std::nullopt;
  read_claim(reader, seen);
  read_nodes(reader, seen);
  return seen;
}

}  // namespace loadline::controller
