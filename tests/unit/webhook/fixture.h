// A small cluster and reviews of it, from tests/data/golden/admission.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "api/codec.h"
#include "webhook/snapshot.h"

namespace loadline::webhook::testing {

inline const std::filesystem::path kGolden = std::filesystem::path(LOADLINE_SOURCE_DIR) / "tests/data/golden/admission";

inline nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

/// Two pools: a100 (2 nodes of 8 x 80 GB) and l4 (1 node of 8 x 24 GB); a policy that gives namespace `small` 4 GPUs.
inline Snapshot small_cluster() {
  const nlohmann::json cluster = read_json(kGolden / "cluster.json");
  Snapshot snapshot;
  snapshot.now = parse_rfc3339(cluster["now"].get<std::string>()).value();
  snapshot.complete = true;
  std::vector<api::GPUPool> pools;
  for (const auto& pool : cluster["pools"]) {
    pools.push_back(api::parse_gpu_pool(pool, api::UnknownFields::Reject).value());
  }
  for (const auto& node : cluster["nodes"]) snapshot.nodes.push_back(placement::node_facts(node));
  snapshot.inventory = placement::inventory_of(pools, snapshot.nodes, {}, snapshot.now);
  for (const auto& policy : cluster["policies"]) {
    snapshot.policies.push_back(api::parse_placement_policy(policy, api::UnknownFields::Reject).value());
  }
  return snapshot;
}

inline nlohmann::json review_named(const std::string& name) { return read_json(kGolden / (name + ".request.json")); }

}  // namespace loadline::webhook::testing
