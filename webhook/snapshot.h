// What a review is judged against: the cluster as the caches have it. A value, so that a review is a pure function and
// a test writes its cluster down.
//
// Thread-safety: immutable once made.
#pragma once

#include <vector>

#include "api/placement_policy.h"
#include "base/text.h"
#include "placement/facts.h"
#include "placement/inventory.h"
#include "placement/ledger.h"

namespace loadline::webhook {

struct Snapshot {
  TimePoint now;
  bool complete = false;  ///< every cache holds a whole list; otherwise nothing is refused for want of a pool
  std::vector<placement::NodeFacts> nodes;
  placement::Inventory inventory;
  std::vector<api::PlacementPolicy> policies;
  placement::Ledger ledger;
};

}  // namespace loadline::webhook
