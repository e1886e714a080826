// What a pool is, put together from its GPUPool object and from its nodes' labels, with the
// disagreements between them in words. Capacity is inventory.cpp's business.
//
// Thread-safety: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "placement/inventory.h"
#include "placement/tables.h"

namespace loadline::placement {

/// Nodes that belong together, and the object that declares them (null: discovered).
struct PoolGroup {
  std::string name;
  const api::GPUPool* object = nullptr;
  std::vector<const NodeFacts*> nodes;
  std::map<std::string, std::string> selector;  ///< of a discovered pool
};

/// Everything in a Pool but its nodes.
[[nodiscard]] Pool pool_traits(const PoolGroup& group, const CloudTables& tables, TimePoint now);

/// Name and selector of the pool that labels put a node in.
struct DiscoveredPool {
  std::string name;
  std::map<std::string, std::string> selector;
};
[[nodiscard]] DiscoveredPool discovered_pool(const NodeFacts& node, const CloudTables& tables);

/// What a node's labels say about its capacity type, with the label that said so.
struct CapacityMark {
  api::CapacityType type = api::CapacityType::OnDemand;
  std::string key, value;
};
[[nodiscard]] std::optional<CapacityMark> capacity_of(const NodeFacts& node, const CloudTables& tables);

/// The price of an object, or what is wrong with it. Both empty: none given.
struct PriceReading {
  std::optional<Price> price;
  std::string problem;
};
/// @param per_node GPUs on a node, for prices per node; 0 unknown
[[nodiscard]] PriceReading read_price(const api::PriceSpec& spec, std::int64_t per_node, TimePoint now);

}  // namespace loadline::placement
