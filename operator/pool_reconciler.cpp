#include "operator/pool_reconciler.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "operator/pool_status.h"
#include "operator/resources.h"

namespace loadline::controller {
namespace {

/// The age of a price and hours of running attempts move without any change in the cluster.
constexpr std::chrono::minutes kRefresh{30};

}  // namespace

kube::ObjectKey PoolReconciler::key(bool pool, const std::string& name) {
  return {pool ? resources::kGPUPools.plural : resources::kPlacementPolicies.plural, name};
}

ActOutcome PoolReconciler::reconcile(const kube::ObjectKey& key) const {
  const TimePoint now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const bool pool = key.ns == resources::kGPUPools.plural;
  const kube::Object stored = caches_.get(pool ? resources::kGPUPools : resources::kPlacementPolicies, {"", key.name});
  if (!stored) return {};
  if (!pool) return actor_.carry_out(decide_policy(stored, now).actions);
  std::vector<api::TrainingJob> jobs;
  for (const kube::Object& object : caches_.list(resources::kTrainingJobs, "")) {
    auto job = api::parse_training_job(object.json(), api::UnknownFields::Ignore);
    if (job) jobs.push_back(*std::move(job));
  }
  return actor_.carry_out(decide_pool(stored, *cluster_facts(caches_, now), jobs, now).actions);
}

void PoolReconciler::work() {
  work_off(queue_, [this](const kube::ObjectKey& key) {
    const ActOutcome outcome = reconcile(key);
    if (outcome.kind == ActOutcome::Kind::Done) {
      queue_.forget(key);
      queue_.add_after(key, kRefresh);
    } else if (outcome.kind != ActOutcome::Kind::Stop) {
      spdlog::info("{}: will try again: {}", to_string(key), outcome.problem);
      queue_.add_rate_limited(key);
    }
  });
}

}  // namespace loadline::controller
