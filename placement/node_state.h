// Whether a node can take a gang's pod at all, and if not, why in words.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "placement/inventory.h"
#include "placement/tables.h"

namespace loadline::placement {

struct NodeVerdict {
  NodeState state = NodeState::Usable;
  std::string why;
};

/// Everything but taints that only some jobs tolerate (see blocking_taint).
/// @param resource name of the pool's GPU resource
[[nodiscard]] NodeVerdict judge_node(const NodeFacts& node, const std::string& resource, const CloudTables& tables);

/// "team=b:NoSchedule".
[[nodiscard]] std::string taint_text(const Taint& taint);

}  // namespace loadline::placement
