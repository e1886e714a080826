#include "operator/controller.h"

#include <spdlog/spdlog.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "api/names.h"
#include "kube/workqueue.h"
#include "operator/act.h"
#include "operator/decide.h"
#include "operator/names.h"
#include "operator/pool_reconciler.h"
#include "operator/resources.h"
#include "operator/wakeups.h"

namespace loadline::controller {
namespace {

namespace core = kube::resources;
using std::chrono::milliseconds;

/// How long a job waits for the caches to see its children as we wrote them, before it looks again.
constexpr milliseconds kBehindPause{50};
constexpr milliseconds kTakenPause{2000};
/// How often the log of one running trainer is read at most, and how many such clocks are kept.
constexpr std::chrono::seconds kLogPeriod{30};

TimePoint wall_now() { return std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now()); }

}  // namespace

struct Controller::Impl {
  Impl(kube::Client& c, kube::EventRecorder& e, Caches& k, Options o)
      : client(c),
        caches(k),
        options(std::move(o)),
        actor(c, e, options.may_write,
              [this](const kube::Resource& resource, const kube::Object& object) { caches.wrote(resource, object); }),
        pools(caches, actor),
        wakeups(caches, jobs, pools.queue()) {}

  /// What all jobs are placed against; computed once per state of the caches and day.
  std::shared_ptr<const ClusterFacts> facts(TimePoint now) {
    const std::string version = caches.facts_version() + rfc3339(now).substr(0, 10);
    const std::lock_guard lock(facts_mutex);
    if (!cached_facts || version != facts_version) {
      cached_facts = cluster_facts(caches, now);
      facts_version = version;
    }
    return cached_facts;
  }

  bool children_behind(const kube::ObjectKey& key) {
    const kube::Object job = caches.get(resources::kTrainingJobs, key);
    const auto attempt = job ? kube::int_at(job.json(), {"status", "attempt"}).value_or(0) : 0;
    const std::pair<kube::Resource, std::string> children[] = {
        {core::kServices, service_name(key.name)},
        {core::kPersistentVolumeClaims, checkpoint_claim_name(key.name)},
        {core::kConfigMaps, plan_config_name(key.name, attempt)},
        {core::kJobs, attempt_job_name(key.name, attempt)}};
    for (const auto& [resource, name] : children) {
      if (caches.freshness(resource, {key.ns, name}) == kube::Freshness::Behind) return true;
    }
    return false;
  }

  /// The end of rank 0's log, read at most every kLogPeriod. Logs that cannot be had are no news.
  void add_log(Observed& seen) {
    if (seen.job.status.attempts.empty() || seen.job.status.attempts.back().cause) return;
    const std::string rank0 = attempt_job_name(seen.stored.name(), seen.job.status.attempts.back().number) + "-0-";
    for (const kube::Object& pod : seen.pods) {
      if (pod.name().rfind(rank0, 0) != 0) continue;
      const auto phase = kube::string_at(pod.json(), {"status", "phase"});
      if (phase != "Running" || !log_due(seen.stored.uid())) continue;
      kube::LogOptions log;
      log.container = trainer_name(pod);
      kube::CallOptions call;
      call.timeout = std::chrono::seconds(3);
      call.once = true;  // what holds up the status of a job is not worth a second try
      if (auto text = client.pod_log(pod.key(), log, call)) seen.log_tail = *std::move(text);
    }
  }

  static std::string trainer_name(const kube::Object& pod) {
    const nlohmann::json& containers = kube::array_at(pod.json(), {"spec", "containers"});
    return containers.size() == 1 ? "" : api::kTrainerContainer;
  }

  bool log_due(const std::string& uid) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(log_mutex);
    std::erase_if(log_read, [&](const auto& entry) { return now - entry.second > 2 * kLogPeriod; });
    const auto [it, first] = log_read.try_emplace(uid, now);
    if (!first && now - it->second < kLogPeriod) return false;
    it->second = now;
    return true;
  }

  /// Observes, decides and acts once. A decision that claims GPUs is made again under the lock.
  ActOutcome reconcile_once(const kube::ObjectKey& key, std::optional<Refusal> refusal, Decision& decision) {
    const TimePoint now = wall_now();
    const Facts shared = [&] { return facts(now); };
    auto seen = observe(caches, shared, key, now);
    if (!seen) return {};
    add_log(*seen);
    seen->refusal = refusal;
    decision = decide(*seen);
    std::unique_lock<std::mutex> claim(claim_mutex, std::defer_lock);
    if (decision.claims_capacity) {
      claim.lock();
      seen = observe(caches, shared, key, now);
      if (!seen) return {};
      seen->refusal = std::move(refusal);
      decision = decide(*seen);
    }
    for (const Action& action : decision.actions) spdlog::debug("{}: {}", to_string(key), describe(action));
    return actor.carry_out(decision.actions);
  }

  void reconcile(const kube::ObjectKey& key) {
    reconciles.add();
    if (!options.may_write()) return;
    if (children_behind(key)) return jobs.add_after(key, kBehindPause);
    Decision decision;
    ActOutcome outcome = reconcile_once(key, std::nullopt, decision);
    if (outcome.refusal) {
      spdlog::warn("{}: {}", to_string(key), outcome.problem);
      outcome = reconcile_once(key, outcome.refusal, decision);
    }
    switch (outcome.kind) {
      case ActOutcome::Kind::Done:
        jobs.forget(key);
        if (decision.requeue_after) jobs.add_after(key, *decision.requeue_after);
        return;
      case ActOutcome::Kind::Wait: return jobs.add_after(key, kTakenPause);
      case ActOutcome::Kind::Stop: return;
      case ActOutcome::Kind::Retry:
        errors.add();
        spdlog::info("{}: will try again: {}", to_string(key), outcome.problem);
        return jobs.add_rate_limited(key);
    }
  }

  void work() {
    work_off(
        jobs, [this](const kube::ObjectKey& key) { reconcile(key); }, [this] { errors.add(); });
  }

  kube::Client& client;
  Caches& caches;
  const Options options;
  kube::WorkQueue jobs;
  Actor actor;
  PoolReconciler pools;
  Wakeups wakeups;
  std::vector<std::thread> threads;
  std::mutex claim_mutex;
  std::mutex facts_mutex;
  std::string facts_version;
  std::shared_ptr<const ClusterFacts> cached_facts;
  std::mutex log_mutex;
  std::map<std::string, std::chrono::steady_clock::time_point> log_read;  ///< by job uid
  kube::Counter reconciles, errors;
};

Controller::Controller(kube::Client& client, kube::EventRecorder& events, Caches& caches, Options options)
    : impl_(std::make_unique<Impl>(client, events, caches, std::move(options))) {}

Controller::~Controller() { stop(); }

void Controller::start() {
  impl_->wakeups.wake_everything();
  for (int i = 0; i < impl_->options.workers; ++i) impl_->threads.emplace_back([this] { impl_->work(); });
  impl_->threads.emplace_back([this] { impl_->pools.work(); });
}

void Controller::stop() {
  constexpr milliseconds kDrain{5000};
  impl_->jobs.shut_down_with_drain(kDrain);
  impl_->pools.queue().shut_down_with_drain(kDrain);
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

const kube::QueueMetrics& Controller::job_queue_metrics() const { return impl_->jobs.metrics(); }
const kube::Counter& Controller::reconciles() const { return impl_->reconciles; }
const kube::Counter& Controller::errors() const { return impl_->errors; }

}  // namespace loadline::controller
