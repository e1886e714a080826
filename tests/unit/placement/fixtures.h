// Nodes, pods, pools and jobs for the tests of placement, in a line each.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "estimator/workload.h"
#include "placement/plan.h"

namespace loadline::placement::testing_support {

using nlohmann::json;

inline const TimePoint kNow = *parse_rfc3339("2026-11-30T12:00:00Z");

/// A GKE node of 8 A100 80 GB that reports its memory.
inline json gke_node(const std::string& name, const std::string& pool, const std::string& zone = "zone-a",
                     int gpus = 8) {
  return {{"metadata",
           {{"name", name},
            {"labels",
             {{"cloud.google.com/gke-nodepool", pool},
              {"node.kubernetes.io/instance-type", "a2-ultragpu-8g"},
              {"topology.kubernetes.io/zone", zone},
              {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"},
              {"nvidia.com/gpu.memory", "81920"}}}}},
          {"spec",
           {{"taints", json::array({{{"key", "nvidia.com/gpu"}, {"value", "present"}, {"effect", "NoSchedule"}}})}}},
          {"status",
           {{"allocatable",
             {{"nvidia.com/gpu", std::to_string(gpus)}, {"cpu", "90"}, {"memory", "1300Gi"}, {"pods", "110"}}},
            {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
}

inline json pod_on(const std::string& node, int gpus, const std::string& phase = "Running") {
  return {
      {"metadata", {{"name", "pod-on-" + node}, {"namespace", "other"}}},
      {"spec",
       {{"nodeName", node},
        {"containers",
         json::array({{{"name", "c"}, {"resources", {{"requests", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}})}}},
      {"status", {{"phase", phase}}}};
}

struct PoolOptions {
  std::string product = "NVIDIA-A100-SXM4-80GB";
  api::CapacityType capacity = api::CapacityType::OnDemand;
  std::optional<std::string> price = "4.00";
  std::int64_t max_nodes = 4;
  std::int64_t per_node = 8;
  std::string currency = "USD";
};

/// A GPUPool that selects the nodes of the GKE pool of the same name.
inline api::GPUPool pool(const std::string& name, const PoolOptions& options = {}) {
  api::GPUPool out;
  out.metadata.name = name;
  out.spec.nodeSelector = {{"cloud.google.com/gke-nodepool", name}};
  out.spec.gpu = api::GpuSpec{};
  out.spec.gpu->product = options.product;
  out.spec.gpu->perNode = options.per_node;
  out.spec.network = api::NetworkSpec{};
  out.spec.network->gbpsPerNode = 400;
  out.spec.capacityType = options.capacity;
  if (options.price) {
    out.spec.price = api::PriceSpec{};
    out.spec.price->perGPUHour = options.price;
    out.spec.price->currency = options.currency;
    out.spec.price->asOf = "2026-11-28";
  }
  out.spec.scaling = api::ScalingSpec{};
  out.spec.scaling->maxNodes = options.max_nodes;
  return out;
}

/// Llama 3.1 8B, full SFT, 1e9 tokens, on a given number of GPUs.
inline api::TrainingJob job_8b(std::int64_t gpus = 8) {
  api::TrainingJob job;
  job.metadata.name = "sft";
  job.metadata.namespaceName = "team";
  job.metadata.uid = "uid-sft";
  job.spec.model.preset = "llama-3.1-8b";
  job.spec.training.sequenceLength = 4096;
  job.spec.training.globalBatchSize = 64;
  job.spec.training.tokens = 1e9;
  job.spec.gpus = api::GpusSpec{};
  job.spec.gpus->count = gpus;
  job.spec.checkpoint = api::CheckpointSpec{};
  return job;
}

/// A snapshot to plan in; change any part, then call planned().
struct World {
  api::TrainingJob job = job_8b();
  std::vector<api::GPUPool> pools;
  std::vector<json> nodes, pods;
  std::vector<api::PlacementPolicy> policies;
  Ledger ledger;
  std::map<std::string, PoolHistory> history;
  std::string current_pool, pinned_zone;
  std::set<std::string> avoided;
  std::optional<TimePoint> escalated_at;
  std::optional<SeenClaim> claim;
  estimator::Workload workload;

  Inventory inventory() const {
    std::vector<NodeFacts> node_list;
    std::vector<PodFacts> pod_list;
    for (const json& node : nodes) node_list.push_back(node_facts(node));
    for (const json& pod : pods) pod_list.push_back(pod_facts(pod));
    return inventory_of(pools, node_list, pod_list, kNow);
  }

  Request request() {
    workload = estimator::workload_from(job.spec).value();
    return {job, workload, history, current_pool, pinned_zone, avoided, escalated_at, 0, claim};
  }

  Plan planned() { return plan(request(), inventory(), policies, ledger, kNow); }
};

inline const Candidate& on(const Plan& plan, const std::string& pool) {
  for (const Candidate& candidate : plan.ranked) {
    if (candidate.pool->name == pool) return candidate;
  }
  throw std::out_of_range("no candidate " + pool);
}

/// One pool of two nodes with eight GPUs each.
inline World one_pool() {
  World world;
  world.pools = {pool("a", {.max_nodes = 0})};
  world.nodes = {gke_node("n1", "a"), gke_node("n2", "a")};
  return world;
}

/// A policy that says nothing yet.
inline api::PlacementPolicy policy(const std::string& name = "team") {
  api::PlacementPolicy out;
  out.metadata.name = name;
  return out;
}

}  // namespace loadline::placement::testing_support
