#include "placement/inventory.h"

#include <algorithm>
#include <set>

#include "base/saturating.h"
#include "placement/node_state.h"
#include "placement/pool_traits.h"
#include "placement/tables.h"

namespace loadline::placement {
namespace {

constexpr const char* kGpuResource = "nvidia.com/gpu";

bool selects(const std::map<std::string, std::string>& selector, const NodeFacts& node) {
  if (selector.empty()) return false;
  return std::all_of(selector.begin(), selector.end(), [&](const auto& pair) {
    const auto found = node.labels.find(pair.first);
    return found != node.labels.end() && found->second == pair.second;
  });
}

// Whether a node that no object selects has GPUs, or will have them soon.
bool looks_like_gpu_node(const NodeFacts& node, const CloudTables& tables) {
  for (const auto& [name, milli] : node.allocatable) {
    const bool slice = name.rfind("nvidia.com/mig-", 0) == 0;
    if (milli > 0 && (name == kGpuResource || name == "nvidia.com/gpu.shared" || slice)) return true;
  }
  return std::any_of(tables.product.begin(), tables.product.end(),
                     [&](const LabelRow& row) { return !node.label(row.key).empty(); });
}

std::string zone_of(const NodeFacts& node) {
  const std::string& zone = node.label("topology.kubernetes.io/zone");
  return zone.empty() ? node.label("failure-domain.beta.kubernetes.io/zone") : zone;
}

struct Grouping {
  std::vector<PoolGroup> groups;                             // declared pools first, in the order of the objects
  std::map<std::string, std::vector<std::string>> overlaps;  // by pool name, in words
};

Grouping group_nodes(const std::vector<api::GPUPool>& objects, const std::vector<NodeFacts>& nodes,
                     const CloudTables& tables) {
  Grouping grouping;
  std::vector<const api::GPUPool*> by_trust;
  by_trust.reserve(objects.size());
  for (const api::GPUPool& object : objects) by_trust.push_back(&object);
  std::sort(by_trust.begin(), by_trust.end(), [](const api::GPUPool* a, const api::GPUPool* b) {
    if (a->spec.nodeSelector.size() != b->spec.nodeSelector.size()) {
      return a->spec.nodeSelector.size() > b->spec.nodeSelector.size();
    }
    return a->metadata.name < b->metadata.name;
  });
  std::map<std::string, std::size_t> declared;
  for (const api::GPUPool* object : by_trust) {
    declared[object->metadata.name] = grouping.groups.size();
    grouping.groups.push_back({object->metadata.name, object, {}, {}});
  }
  std::map<std::string, std::size_t> discovered;
  for (const NodeFacts& node : nodes) {
    PoolGroup* owner = nullptr;
    for (std::size_t i = 0; i < by_trust.size(); ++i) {
      if (!selects(by_trust[i]->spec.nodeSelector, node)) continue;
      if (owner == nullptr) {
        owner = &grouping.groups[i];
      } else {
        grouping.overlaps[by_trust[i]->metadata.name].push_back("node " + node.name + " is also selected by pool " +
                                                                owner->name + ", which has it");
      }
    }
    if (owner != nullptr) {
      owner->nodes.push_back(&node);
      continue;
    }
    if (!looks_like_gpu_node(node, tables)) continue;
    DiscoveredPool pool = discovered_pool(node, tables);
    if (pool.name.empty()) continue;
    if (declared.count(pool.name) > 0) pool.name += "-discovered";
    const auto [found, added] = discovered.try_emplace(pool.name, grouping.groups.size());
    if (added) grouping.groups.push_back({pool.name, nullptr, {}, pool.selector});
    grouping.groups[found->second].nodes.push_back(&node);
  }
  return grouping;
}

// Sums of requests by node name, pods that hold something only.
std::map<std::string, Resources> requests_by_node(const std::vector<PodFacts>& pods) {
  std::map<std::string, Resources> sums;
  for (const PodFacts& pod : pods) {
    if (pod.node.empty() || pod.terminal) continue;
    Resources& sum = sums[pod.node];
    for (const auto& [name, milli] : pod.requests) sum[name] = sat_add(sum[name], milli);
    sum["pods"] = sat_add(sum["pods"], 1000);
  }
  return sums;
}

PoolNode pool_node(const NodeFacts& facts, const Pool& pool, const Resources& requested, const CloudTables& tables) {
  PoolNode node;
  node.name = facts.name;
  node.zone = zone_of(facts);
  node.labels = facts.labels;
  node.gpus = whole(facts.allocatable, pool.resource);
  const NodeVerdict verdict = judge_node(facts, pool.resource, tables);
  node.state = verdict.state;
  node.why = verdict.why;
  for (const Taint& taint : facts.taints) {
    if (taint.effect == "NoSchedule" || taint.effect == "NoExecute") node.taints.push_back(taint);
  }
  node.allocatable = node.free_resources = facts.allocatable;
  for (const auto& [name, milli] : requested) {
    const auto found = node.free_resources.find(name);
    if (found != node.free_resources.end()) found->second = std::max<std::int64_t>(0, found->second - milli);
  }
  if (node.state == NodeState::Usable) node.free = whole(node.free_resources, pool.resource);
  return node;
}

}  // namespace

std::map<std::string, std::int64_t> Pool::extra_for(std::int64_t pods, std::int64_t gpus_per_pod) const {
  std::map<std::string, std::int64_t> out;
  if (pods <= 1) return out;
  for (const auto& [resource_name, count] : extra_resources) {
    out[resource_name] = ceil_div(sat_mul(count, gpus_per_pod), std::max<std::int64_t>({1, per_node, gpus_per_pod}));
  }
  return out;
}

Resources Pool::asked_by_pod(Resources of_template, std::int64_t pods, std::int64_t gpus_per_pod) const {
  for (const auto& [device, count] : extra_for(pods, gpus_per_pod))
    of_template.try_emplace(device, sat_mul(count, 1000));
  of_template["pods"] = 1000;
  return of_template;
}

std::int64_t Pool::gpus_total() const {
  std::int64_t sum = 0;
  for (const PoolNode& node : nodes) sum = sat_add(sum, node.state == NodeState::Usable ? node.gpus : 0);
  return sum;
}

std::int64_t Pool::gpus_free() const {
  std::int64_t sum = 0;
  for (const PoolNode& node : nodes) sum = sat_add(sum, node.free);
  return sum;
}

std::string Pool::link_text() const {
  switch (interconnect) {
    case api::Interconnect::NvSwitch: return "NVSwitch";
    case api::Interconnect::NvLink: return "NVLink";
    case api::Interconnect::Pcie: return "PCIe";
    case api::Interconnect::Unknown: break;
  }
  return "link unknown";
}

const Pool* Inventory::find(const std::string& name) const {
  for (const auto& pool : pools) {
    if (pool->name == name) return pool.get();
  }
  return nullptr;
}

Inventory inventory_of(const std::vector<api::GPUPool>& objects, const std::vector<NodeFacts>& nodes,
                       const std::vector<PodFacts>& pods, TimePoint now) {
  const CloudTables& tables = CloudTables::builtin();
  Grouping grouping = group_nodes(objects, nodes, tables);
  const auto requested = requests_by_node(pods);
  Inventory inventory;
  std::map<std::string, std::string> resource_of_node;
  static const Resources kNothing;
  for (const PoolGroup& group : grouping.groups) {
    auto pool = std::make_shared<Pool>(pool_traits(group, tables, now));
    for (const NodeFacts* node : group.nodes) {
      const auto found = requested.find(node->name);
      pool->nodes.push_back(pool_node(*node, *pool, found == requested.end() ? kNothing : found->second, tables));
      resource_of_node[node->name] = pool->resource;
    }
    std::sort(pool->nodes.begin(), pool->nodes.end(),
              [](const PoolNode& a, const PoolNode& b) { return a.name < b.name; });
    for (const std::string& overlap : grouping.overlaps[group.name]) pool->disagreements.push_back(overlap);
    inventory.pools.push_back(std::move(pool));
  }
  std::sort(inventory.pools.begin(), inventory.pools.end(),
            [](const auto& a, const auto& b) { return a->name < b->name; });
  for (const PodFacts& pod : pods) {
    const auto found = resource_of_node.find(pod.node);
    if (pod.job_uid.empty() || pod.terminal || found == resource_of_node.end()) continue;
    std::int64_t& bound = inventory.bound[pod.job_uid + "/" + std::to_string(pod.attempt)];
    bound = sat_add(bound, whole(pod.requests, found->second));
  }
  for (const NodeFacts& node : nodes) {
    if (resource_of_node.count(node.name) == 0 && looks_like_gpu_node(node, tables)) {
      inventory.notes.push_back("node " + node.name + " has GPUs, but neither a GPUPool selects it nor do its labels " +
                                "name a pool, an instance type or a product");
    }
  }
  return inventory;
}

api::GPUPoolStatus pool_status(const Pool& pool) {
  api::GPUPoolStatus status;
  api::PoolNodeCounts counts;
  std::map<std::string, api::PoolZoneStatus> zones;
  for (const PoolNode& node : pool.nodes) {
    if (node.state == NodeState::NotReady || node.state == NodeState::Arriving) {
      ++counts.notReady;
    } else if (node.state == NodeState::Cordoned) {
      ++counts.cordoned;
    } else if (node.state == NodeState::Ending) {
      ++counts.ending;
    } else {
      ++counts.ready;
    }
    if (node.state != NodeState::Usable) continue;
    api::PoolZoneStatus& zone = zones[node.zone];
    zone.zone = node.zone;
    zone.nodes += 1;
    zone.gpusTotal = sat_add(zone.gpusTotal, node.gpus);
    zone.gpusFree = sat_add(zone.gpusFree, node.free);
    zone.largestFreeBlock = std::max(zone.largestFreeBlock, node.free);
  }
  for (auto& [name, zone] : zones) status.zones.push_back(std::move(zone));
  status.nodes = counts;
  status.gpusTotal = pool.gpus_total();
  status.gpusFree = pool.gpus_free();
  status.disagreements = pool.disagreements;
  if (!pool.price_problem.empty()) status.disagreements.push_back(pool.price_problem);
  if (pool.price) status.priceAgeDays = pool.price->age_days;
  return status;
}

bool tolerates(const std::vector<api::Toleration>& tolerations, const Taint& taint) {
  if (taint.effect == "PreferNoSchedule") return true;
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const api::Toleration& toleration) {
    const std::string effect = toleration.effect.value_or("");
    const std::string key = toleration.key.value_or("");
    const bool exists = toleration.op.value_or("Equal") == "Exists";
    if (!effect.empty() && effect != taint.effect) return false;
    if (key.empty()) return exists;  // an empty key with Exists tolerates everything
    if (key != taint.key) return false;
    return exists || toleration.value.value_or("") == taint.value;
  });
}

}  // namespace loadline::placement
