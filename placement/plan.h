// The decision: for each pool the best layout of the job on it, or why there is none; the
// pools ranked by what finishing there is expected to cost or take.
//
// plan() is a pure function of a snapshot: same inputs, same plan, no clock, no I/O.
// Thread-safety: plain values; a Plan shares its pools with the inventory and keeps them alive.
// Errors: none; a job that cannot be placed has an outcome with reasons.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/training_job.h"
#include "base/text.h"
#include "estimator/checkpoint_interval.h"
#include "estimator/checkpoint_size.h"
#include "estimator/estimate.h"
#include "estimator/step_time.h"
#include "placement/inventory.h"
#include "placement/ledger.h"
#include "placement/policy.h"
#include "placement/reason.h"

namespace loadline::placement {

/// What a job has gone through on one pool.
struct PoolHistory {
  std::int64_t preemptions = 0;
  double node_hours = 0;  ///< spent there, nodes x hours
};

/// The checkpoint claim as it is in the cluster: what was left open when it was made is settled, and never changes.
struct SeenClaim {
  std::string name;
  std::vector<std::string> access_modes;
  std::string storage_class;  ///< empty: none, or not known
};

/// A job to place, with what is known of its past. References must outlive the call.
struct Request {
  const api::TrainingJob& job;
  const estimator::Workload& workload;
  std::map<std::string, PoolHistory> history;  ///< by pool name
  std::string current_pool;                    ///< of the last attempt; empty on the first
  std::string pinned_zone;                     ///< of the bound checkpoint volume; empty: free
  std::set<std::string> avoided_nodes;         ///< nodes that ended attempts lately
  std::optional<TimePoint> escalated_at;       ///< when the job was moved off spot; absent: it was not
  double tokens_done = 0;                      ///< trained on already; the rest is what costs
  std::optional<SeenClaim> claim = {};         ///< that the gang would mount; absent: there is none yet
};

/// When a pool that fits can start the gang.
enum class Start {
  Now,      ///< enough whole nodes are free
  ScaleUp,  ///< an autoscaler can bring the nodes that are missing
  Waits,    ///< others must finish first
};

/// What running to the end is expected to take. Absent parts are unknown, never 0.
struct Outlook {
  double step_seconds = 0;
  double tokens_per_second = 0;
  double mean_between_seconds = 0;   ///< between interruptions of this gang; may be infinite
  double restart_seconds = 0;        ///< lost at each one besides the work since the last checkpoint
  double slowdown = 1;               ///< wall over work: writes, lost work and restarts
  std::optional<double> work_hours;  ///< absent without a length of the run
  std::optional<double> hours;       ///< wall
  std::optional<double> interruptions;
  std::optional<double> cost;  ///< in the pool's currency
  std::optional<double> cost_per_billion_tokens;
};

using api::Verdict;

struct Candidate {
  std::shared_ptr<const Pool> pool;  ///< never null
  std::string zone;                  ///< where the gang would run; empty: any
  Verdict verdict = Verdict::Refused;
  Reason reason = Reason::Fits;
  std::string detail;  ///< the reason in words with its numbers, one line

  /// Set for all but pools that were refused before sizing.
  std::optional<estimator::Layout> layout;
  estimator::Estimate estimate;
  std::int64_t required_mib = 0;  ///< per GPU, margin (or override) included: what the gate compares
  std::int64_t usable_mib = 0;    ///< per GPU; 0 unknown
  bool memory_warning = false;    ///< does not fit, and is let through by enforcement Warn or Off

  Start start = Start::Now;
  std::int64_t free_gpus = 0;            ///< in whole pods of this layout, at this moment
  std::optional<double> price_per_hour;  ///< of the whole gang
  std::optional<Outlook> outlook;        ///< absent: speed unknown
  std::string speed_unknown;             ///< why there is no outlook, in words
  estimator::Interval interval;          ///< between checkpoints

  [[nodiscard]] std::int64_t nodes() const { return layout ? layout->nodes() : 0; }
};

enum class Outcome {
  Placed,       ///< ranked.front() is chosen and can start (now, or by scaling up)
  Waiting,      ///< nothing can start now, but the cluster may change so that it can
  Unplaceable,  ///< never, with this job, these pools and this policy
};

/// The checkpoint volume the job gets, and what one checkpoint holds.
struct CheckpointPlan {
  std::string claim;      ///< existing or to be made; empty: the job has no spec.checkpoint, so no volume
  bool existing = false;  ///< the user's claim
  std::optional<std::string> storage_class;  ///< absent: the cluster's default
  std::int64_t bytes = 0;                    ///< of the volume; 0 for an existing one
  estimator::CheckpointSize size;
  std::int64_t keep_last = 2;
  api::RetainPolicy retain = api::RetainPolicy::Retain;
  std::vector<std::string> access_modes;
};

struct Plan {
  std::vector<Candidate> ranked;  ///< chosen, then those that fit, then refused; every pool once
  Outcome outcome = Outcome::Unplaceable;
  EffectivePolicy policy;                ///< what counts of it in its mode
  EffectivePolicy stated;                ///< all that it says
  std::vector<std::int64_t> gpu_counts;  ///< that were tried, ascending
  bool gpus_chosen = false;              ///< the user left the count open
  CheckpointPlan checkpoint;
  std::vector<std::string> notes;    ///< what a policy in mode Warn would do, mixed currencies, stale prices, ...
  std::vector<std::string> dry_run;  ///< what a policy in mode DryRun would do: for status, not told at apply

  /// The pool the job runs or would run on: the first that fits, also while it waits. Null when unplaceable.
  [[nodiscard]] const Candidate* best() const;
  /// The chosen one, only when the outcome is Placed.
  [[nodiscard]] const Candidate* chosen() const;
};

[[nodiscard]] Plan plan(const Request& request, const Inventory& inventory,
                        const std::vector<api::PlacementPolicy>& policies, const Ledger& ledger, TimePoint now);

/// The promise that a chosen candidate makes, for the ledger.
[[nodiscard]] Promise promise_of(const Request& request, const Candidate& chosen, std::int64_t attempt);

}  // namespace loadline::placement
