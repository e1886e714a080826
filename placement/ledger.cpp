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
    promise.pod = requests_besides_gpus(job.spec.podTemplate);
    ledger.promises.push_back(std::move(promise));
  }
  return ledger;
}

namespace {

// Pods of a promise that are not on nodes yet.
std::int64_t unbound_pods(const Promise& promise, const Inventory& inventory) {
  if (promise.gpus_per_node <= 0) return 0;
  const auto found = inventory.bound.find(promise.job_uid + "/" + std::to_string(promise.attempt));
  const std::int64_t bound = found == inventory.bound.end() ? 0 : found->second / promise.gpus_per_node;
  return std::max<std::int64_t>(0, promise.nodes - bound);
}

bool has_room(const PoolNode& node, const NodeRoom& room, const Promise& promise, const Resources& others) {
  if (room.gpus < promise.gpus_per_node || (!promise.zone.empty() && node.zone != promise.zone)) return false;
  return std::all_of(others.begin(), others.end(), [&](const auto& need) {
    const auto free = node.free_resources.find(need.first);
    if (free == node.free_resources.end()) return true;  // the node does not say
    const auto taken = room.taken.find(need.first);
    return free->second - (taken == room.taken.end() ? 0 : taken->second) >= need.second;
  });
}

// Takes the fullest node that still has room, as a scheduler that packs would: the big holes
// stay for big gangs. Gives the pods that found none.
std::int64_t lay(const Pool& pool, std::vector<NodeRoom>& rooms, const Promise& promise, std::int64_t pods) {
  const Resources others = pool.asked_by_pod(promise.pod, promise.nodes, promise.gpus_per_node);
  for (std::int64_t left = pods; left > 0; --left) {
    NodeRoom* best = nullptr;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      if (!has_room(pool.nodes[i], rooms[i], promise, others)) continue;
      if (best == nullptr || rooms[i].gpus < best->gpus) best = &rooms[i];
    }
    if (best == nullptr) return left;
    best->gpus -= promise.gpus_per_node;
    for (const auto& [name, milli] : others) best->taken[name] = sat_add(best->taken[name], milli);
  }
  return 0;
}

}  // namespace

PoolRoom room_after_promises(const Pool& pool, const Inventory& inventory, const Ledger& ledger,
                             const std::string& but_job) {
  PoolRoom room;
  for (const PoolNode& node : pool.nodes) room.nodes.push_back({node.free, {}});
  std::vector<const Promise*> promises;
  for (const Promise& promise : ledger.promises) {
    const bool own = !but_job.empty() && promise.job_uid == but_job;
    if (promise.pool == pool.name && !own) promises.push_back(&promise);
  }
  // Largest first, so that small ones do not split nodes.
  std::stable_sort(promises.begin(), promises.end(),
                   [](const Promise* a, const Promise* b) { return a->gpus_per_node > b->gpus_per_node; });
  for (const Promise* promise : promises) {
    const std::int64_t left = lay(pool, room.nodes, *promise, unbound_pods(*promise, inventory));
    const std::int64_t on_one =
        std::max<std::int64_t>(1, pool.per_node / std::max<std::int64_t>(1, promise->gpus_per_node));
    room.nodes_to_come = sat_add(room.nodes_to_come, ceil_div(left, on_one));
  }
  return room;
}

}  // namespace loadline::placement
