#include "placement/ledger.h"

#include <algorithm>
#include <cctype>

#include "base/saturating.h"
#include "placement/money.h"

namespace loadline::placement {

Usage Ledger::usage(const std::string& namespaceName, const std::string& but_job) const {
  Usage usage;
  for (const Promise& promise : promises) {
    if (promise.namespaceName != namespaceName || (!but_job.empty() && promise.job_uid == but_job)) continue;
    usage.gpus = sat_add(usage.gpus, promise.gpus());
    usage.jobs += 1;
    if (promise.cost_per_hour) {
      usage.cost_per_hour[promise.currency] += *promise.cost_per_hour;
    } else {
      usage.unpriced_jobs += 1;
    }
  }
  return usage;
}

Ledger ledger_of(const std::vector<api::TrainingJob>& jobs) {
  Ledger ledger;
  for (const api::TrainingJob& job : jobs) {
    const api::TrainingJobStatus& status = job.status;
    if (status.attempts.empty() || status.completionTime || !status.placement || !status.placement->layout) continue;
    const api::AttemptStatus& attempt = status.attempts.back();
    if (attempt.endTime || attempt.pool.empty()) continue;
    Promise promise;
    promise.job_uid = job.metadata.uid;
    promise.namespaceName = job.metadata.namespaceName;
    promise.job = job.metadata.name;
    promise.attempt = attempt.number;
    promise.pool = attempt.pool;
    promise.zone = status.placement->zone.value_or("");
    promise.nodes = std::max<std::int64_t>(0, status.placement->layout->nodes);
    promise.gpus_per_node = std::max<std::int64_t>(0, status.placement->layout->gpusPerNode);
    promise.currency = status.placement->currency.value_or("USD");
    // "12.34" as placement_status writes it.
    if (status.placement->pricePerHour) promise.cost_per_hour = parse_money(*status.placement->pricePerHour);
    ledger.promises.push_back(std::move(promise));
  }
  return ledger;
}

namespace {

// Free GPUs of one node while promises are laid onto it.
struct Room {
  const PoolNode* node = nullptr;
  std::int64_t free = 0;
};

// Pods of a promise that are not on nodes yet.
std::int64_t unbound_pods(const Promise& promise, const Inventory& inventory) {
  if (promise.gpus_per_node <= 0) return 0;
  const auto found = inventory.bound.find(promise.job_uid + "/" + std::to_string(promise.attempt));
  const std::int64_t bound = found == inventory.bound.end() ? 0 : found->second / promise.gpus_per_node;
  return std::max<std::int64_t>(0, promise.nodes - bound);
}

// Takes the fullest node that still has room, as a scheduler that packs would: the big holes
// stay for big gangs. Largest promises go first so that small ones do not split nodes.
void lay(std::vector<Room>& rooms, const Promise& promise, std::int64_t pods) {
  for (std::int64_t i = 0; i < pods; ++i) {
    Room* best = nullptr;
    for (Room& room : rooms) {
      if (room.free < promise.gpus_per_node) continue;
      if (!promise.zone.empty() && room.node->zone != promise.zone) continue;
      if (best == nullptr || room.free < best->free) best = &room;
    }
    if (best == nullptr) return;
    best->free -= promise.gpus_per_node;
  }
}

}  // namespace

std::vector<std::int64_t> free_after_promises(const Pool& pool, const Inventory& inventory, const Ledger& ledger,
                                              const std::string& but_job) {
  std::vector<Room> rooms;
  for (const PoolNode& node : pool.nodes) rooms.push_back({&node, node.free});
  std::vector<const Promise*> promises;
  for (const Promise& promise : ledger.promises) {
    const bool own = !but_job.empty() && promise.job_uid == but_job;
    if (promise.pool == pool.name && !own) promises.push_back(&promise);
  }
  std::stable_sort(promises.begin(), promises.end(),
                   [](const Promise* a, const Promise* b) { return a->gpus_per_node > b->gpus_per_node; });
  for (const Promise* promise : promises) lay(rooms, *promise, unbound_pods(*promise, inventory));
  std::vector<std::int64_t> free;
  free.reserve(rooms.size());
  for (const Room& room : rooms) free.push_back(room.free);
  return free;
}

}  // namespace loadline::placement
