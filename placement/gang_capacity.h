// Whether a gang fits a pool by whole nodes: now, after a scale-up, or ever.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "placement/inventory.h"
#include "placement/ledger.h"
#include "placement/plan.h"

namespace loadline::placement {

/// `nodes` pods of `gpus_per_node` GPUs each.
struct Gang {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
};

/// What the pod template asks of a node besides GPUs.
struct PodNeeds {
  Resources resources;  ///< of one pod, GPUs left out
  std::vector<api::Toleration> tolerations;
  std::map<std::string, std::string> node_selector;
  nlohmann::json node_terms;  ///< of required node affinity; null for none
};

[[nodiscard]] PodNeeds pod_needs(const api::TrainingJob& job);

/// The gang with the fewest nodes that holds `gpus` GPUs in equal pods on nodes of
/// `per_node` (>= 1) GPUs: 12 on 8 is 2 x 6.
[[nodiscard]] Gang gang_of(std::int64_t gpus, std::int64_t per_node);

struct GangCapacity {
  std::int64_t pods_now = 0;       ///< that fit at this moment in `zone`
  std::int64_t pods_scaled = 0;    ///< with the nodes that an autoscaler can add
  std::int64_t pods_ever = 0;      ///< when every node is there, free and healthy
  std::string zone;                ///< the one that takes the whole gang; empty: several or none
  Reason shortage = Reason::Fits;  ///< why pods_now is too few; Fits when it is not
  std::string detail;              ///< the shortage in words with numbers
};

/// @param room see room_after_promises()
/// @param host_bytes of RAM that each pod will use at least, whatever it requests
[[nodiscard]] GangCapacity gang_capacity(const Request& request, const PodNeeds& needs, const Pool& pool,
                                         const PoolRoom& room, const Gang& gang, std::int64_t host_bytes);

}  // namespace loadline::placement
