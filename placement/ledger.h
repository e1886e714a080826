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

/// Free GPUs of each of the pool's nodes, in their order, after promises of jobs other than
/// `but_job` (empty: all) whose pods are not on nodes yet. A promise that finds no room (its
/// nodes are still booting) takes none.
[[nodiscard]] std::vector<std::int64_t> free_after_promises(const Pool& pool, const Inventory& inventory,
                                                            const Ledger& ledger, const std::string& but_job);

}  // namespace loadline::placement
