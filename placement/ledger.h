// GPUs that are spoken for: attempts of ours that are placed but whose pods are not all on
// nodes yet. With the pods' requests in the inventory this is what keeps two gangs from
// being promised the same GPUs.
//
// Thread-safety: plain values; pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/training_job.h"
#include "placement/inventory.h"

namespace loadline::placement {

/// One placed attempt that has not ended.
struct Promise {
  std::string job_uid, namespaceName, job;
  std::int64_t attempt = 0;
  std::string pool, zone;  ///< zone empty: any
  std::int64_t nodes = 0, gpus_per_node = 0;
  std::optional<double> cost_per_hour;  ///< absent: unknown
  std::string currency;
  Resources pod{};  ///< what each of its pods asks for besides GPUs

  [[nodiscard]] std::int64_t gpus() const { return nodes * gpus_per_node; }
};

struct Usage {
  std::int64_t gpus = 0, jobs = 0;
  std::map<std::string, double> cost_per_hour;  ///< by currency: different ones are never added up
  std::int64_t unpriced_jobs = 0;               ///< what they cost is not known
};

struct Ledger {
  std::vector<Promise> promises;

  /// Of a namespace, one job left out.
  [[nodiscard]] Usage usage(const std::string& namespaceName, const std::string& but_job) const;
};

/// The promises in the jobs' own status: a placement and an attempt that has not ended.
[[nodiscard]] Ledger ledger_of(const std::vector<api::TrainingJob>& jobs);

/// What promises leave of one node.
struct NodeRoom {
  std::int64_t gpus = 0;
  Resources taken;  ///< by promised pods, of what the node has free besides GPUs
};

/// What promises leave of a pool.
struct PoolRoom {
  std::vector<NodeRoom> nodes;     ///< in the pool's order
  std::int64_t nodes_to_come = 0;  ///< that promised pods without a place will fill when they are there
};

/// After the promises of jobs other than `but_job` (empty: all) whose pods are not on nodes yet.
[[nodiscard]] PoolRoom room_after_promises(const Pool& pool, const Inventory& inventory, const Ledger& ledger,
                                           const std::string& but_job);

}  // namespace loadline::placement
