#include "placement/plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "placement/filters.h"
#include "placement/gang_capacity.h"
#include "placement/money.h"
#include "placement/not_enforced.h"
#include "placement/outlook.h"
#include "placement/ranking.h"
#include "placement/sizing.h"
#include "placement/volume.h"
#include "placement/words.h"

namespace loadline::placement {
namespace {

class Planner {
 public:
  Planner(const Request& request, const Inventory& inventory, EffectivePolicy policy, const Ledger& ledger,
          TimePoint now)
      : request_(request),
        inventory_(inventory),
        ledger_(ledger),
        needs_(pod_needs(request.job)),
        layouts_(request.workload, request.job.spec) {
    plan_.policy = std::move(policy);
    plan_.gpu_counts = gpu_counts(request.job.spec, plan_.policy);
    plan_.gpus_chosen = !request.job.spec.gpus || !request.job.spec.gpus->count;
    plan_.checkpoint = checkpoint_plan(request, plan_.policy);
    escalated_ = escalated(request, plan_.policy, inventory, now);
    others_ = ledger.usage(request.job.metadata.namespaceName, request.job.metadata.uid);
  }

  Plan run() {
    for (const auto& pool : inventory_.pools) plan_.ranked.push_back(best_on(pool));
    rank(request_, plan_.policy, escalated_, plan_.ranked);
    conclude();
    finish_checkpoint();
    add_notes();
    return std::move(plan_);
  }

 private:
  static void refuse(Candidate& candidate, const Refusal& refusal) {
    candidate.verdict = Verdict::Refused;
    candidate.reason = refusal.reason;
    candidate.detail = refusal.detail;
  }

  Candidate best_on(const std::shared_ptr<const Pool>& pool) {
    Candidate blank;
    blank.pool = pool;
    blank.usable_mib = pool->usable_mib.value_or(0);
    if (const auto refusal = excluded_by_job(request_, *pool)) {
      refuse(blank, *refusal);
      return blank;
    }
    if (const auto refusal = excluded_by_policy(request_, plan_.policy, *pool)) {
      refuse(blank, *refusal);
      return blank;
    }
    if (escalated_ && pool->capacity_type == api::CapacityType::Spot) {
      refuse(blank,
             {Reason::Escalated, "spot was left after too many interruptions; " + plan_.policy.called() +
                                     " moves the job to " + std::string(api::name_of(plan_.policy.spot.escalate_to))});
      return blank;
    }
    if (const auto refusal = class_not_listed(request_, plan_, *pool)) {
      refuse(blank, *refusal);
      return blank;
    }
    if (pool->per_node <= 0) {
      refuse(blank,
             pool->nodes.empty()
                 ? Refusal{Reason::NotEnoughGPUs, "has no nodes, and GPUs per node are not known; set spec.gpu.perNode"}
                 : Refusal{Reason::NodesBooting, "its nodes offer no " + pool->resource + " yet"});
      return blank;
    }
    const PoolRoom room = room_after_promises(*pool, inventory_, ledger_, request_.job.metadata.uid);
    std::optional<Candidate> best;
    for (const std::int64_t count : plan_.gpu_counts) {
      Candidate candidate = sized(blank, gang_of(count, pool->per_node), room);
      if (!best || better_size(plan_.policy, candidate, *best)) best = std::move(candidate);
    }
    return best.value_or(blank);
  }

  Candidate sized(const Candidate& blank, const Gang& gang, const PoolRoom& room) {
    Candidate candidate = blank;
    const std::vector<estimator::Sized>& layouts = layouts_.of(gang);
    if (layouts.empty()) {
      refuse(candidate, {Reason::NoLayout, estimator::why_no_layout(request_.workload, gang.nodes * gang.gpus_per_node,
                                                                    gang.gpus_per_node, layouts_.constraints())});
      return candidate;
    }
    choose_layout(layouts, candidate);
    if (candidate.verdict == Verdict::Refused && candidate.reason != Reason::Fits) return candidate;

    const GangCapacity capacity =
        gang_capacity(request_, needs_, *candidate.pool, room, gang, candidate.estimate.host_bytes_per_node);
    candidate.zone = capacity.zone;
    candidate.free_gpus = capacity.pods_now * gang.gpus_per_node;
    if (capacity.pods_ever < gang.nodes) {
      refuse(candidate, {capacity.shortage, capacity.detail});
      return candidate;
    }
    if (const auto refusal = not_shared(request_, plan_, gang.nodes)) {
      refuse(candidate, *refusal);
      return candidate;
    }
    if (const auto refusal = over_limit(request_, plan_.policy, others_, candidate)) {
      refuse(candidate, *refusal);
      return candidate;
    }
    if (candidate.outlook && !(candidate.outlook->slowdown < kNoProgressSlowdown)) {
      refuse(candidate,
             {Reason::NoExpectedProgress,
              "interrupted every " + duration_text(candidate.outlook->mean_between_seconds) + ", a restart takes " +
                  duration_text(candidate.outlook->restart_seconds) + " and a checkpoint " +
                  duration_text(candidate.interval.write_seconds) + ": it would not get on"});
      return candidate;
    }
    candidate.verdict = Verdict::Fits;
    candidate.reason = capacity.shortage;
    candidate.detail = capacity.detail;
    candidate.start = capacity.shortage == Reason::Fits    ? Start::Now
                      : capacity.pods_scaled >= gang.nodes ? Start::ScaleUp
                                                           : Start::Waits;
    if (candidate.start == Start::ScaleUp) candidate.reason = Reason::Fits;
    return candidate;
  }

  // The layout that trains fastest of those that fit; when none fits, the one that needs least,
  // refused unless memory is not enforced.
  void choose_layout(const std::vector<estimator::Sized>& layouts, Candidate& candidate) {
    const Pool& pool = *candidate.pool;
    const estimator::Machine machine = pool.machine();
    const bool enforced = plan_.policy.sizing.enforcement == api::Enforcement::Enforce;
    if (!pool.usable_mib && enforced) {
      candidate.layout = layouts.front().layout;
      refuse(candidate, {Reason::UnknownMemory, "memory per GPU is not known: no label of its nodes says it, " +
                                                    (pool.product.empty() ? std::string("nor is the product")
                                                                          : pool.product + " is not in the table") +
                                                    "; set spec.gpu.memoryMiBPerGPU of a GPUPool"});
      return;
    }
    const estimator::Sized* fastest = nullptr;
    const estimator::Sized* least = nullptr;
    std::optional<estimator::StepTime> best_time;
    std::string unknown;
    for (const estimator::Sized& sized : layouts) {
      if (least == nullptr || sized.estimate.peak_bytes < least->estimate.peak_bytes) least = &sized;
      if (required_mib(sized.estimate, plan_.policy.sizing) > candidate.usable_mib || !host_memory_fits(pool, sized))
        continue;
      auto time = estimator::step_time(request_.workload, sized.layout, machine);
      if (!time) {
        unknown = time.error().message;
        if (fastest == nullptr) fastest = &sized;
        continue;
      }
      // A layout with more communication must be clearly faster to be preferred.
      constexpr double kClearly = 0.99;
      if (!best_time || time->tokens_per_second() * kClearly > best_time->tokens_per_second()) {
        best_time = *time;
        fastest = &sized;
      }
    }
    const bool fits = fastest != nullptr;
    const estimator::Sized& chosen = fits ? *fastest : *least;
    candidate.layout = chosen.layout;
    candidate.estimate = chosen.estimate;
    candidate.required_mib = required_mib(chosen.estimate, plan_.policy.sizing);
    candidate.speed_unknown = unknown;
    if (!fits) {
      if (enforced && !chosen.estimate.lower_bound_only) {
        refuse(candidate, memory_refusal(pool, chosen));
        return;
      }
      candidate.memory_warning = true;
      auto time = estimator::step_time(request_.workload, chosen.layout, machine);
      if (time) best_time = *time;
      if (!time) candidate.speed_unknown = time.error().message;
    }
    if (pool.price) {
      candidate.price_per_hour = pool.price->per_gpu_hour * static_cast<double>(candidate.layout->gpus);
    }
    if (best_time) look_ahead(request_, plan_.policy, plan_.checkpoint, *best_time, candidate);
  }

  [[nodiscard]] static std::int64_t host_bytes(const Pool& pool) {
    std::int64_t most = 0;
    for (const PoolNode& node : pool.nodes) {
      const auto found = node.allocatable.find("memory");
      if (found != node.allocatable.end()) most = std::max(most, found->second / 1000);
    }
    return most;
  }

  // Offloaded states need RAM; where no node says how much it has, nothing is claimed.
  static bool host_memory_fits(const Pool& pool, const estimator::Sized& sized) {
    if (sized.estimate.host_bytes_per_node <= 0) return true;
    const std::int64_t most = host_bytes(pool);
    return most <= 0 || sized.estimate.host_bytes_per_node <= most;
  }

  Refusal memory_refusal(const Pool& pool, const estimator::Sized& sized) const {
    const EffectivePolicy::Sizing& sizing = plan_.policy.sizing;
    const std::int64_t required = required_mib(sized.estimate, sizing);
    const std::int64_t usable = pool.usable_mib.value_or(0);
    if (required <= usable) {
      return {Reason::InsufficientHostMemory, "needs " + gib(sized.estimate.host_bytes_per_node) +
                                                  " of RAM per node for offload, its largest has " +
                                                  gib(host_bytes(pool))};
    }
    std::string sum;
    if (sizing.override_mib) {
      sum = " (spec.memory.overrideMiBPerGPU)";
    } else if (sizing.margin_percent > 0) {
      sum = " (" + gib_number(sized.estimate.peak_bytes) + " + " + std::to_string(sizing.margin_percent) + " % margin)";
    }
    return {Reason::InsufficientMemory, "needs " + gib_of_mib(required) + " GiB per GPU" + sum + " on " +
                                            std::to_string(sized.layout.gpus) + ", usable " + gib_of_mib(usable) +
                                            " (short " + gib_of_mib(required - usable) + ")"};
  }

  void conclude() {
    if (plan_.ranked.empty()) {
      plan_.outcome = Outcome::Waiting;  // pools may come; nothing speaks against the job
      return;
    }
    Candidate& first = plan_.ranked.front();
    if (first.verdict == Verdict::Fits) {
      plan_.outcome = first.start == Start::Waits ? Outcome::Waiting : Outcome::Placed;
      if (plan_.outcome == Outcome::Placed) {
        first.verdict = Verdict::Chosen;
        first.reason = Reason::Chosen;
      }
      return;
    }
    const bool may = std::any_of(plan_.ranked.begin(), plan_.ranked.end(),
                                 [](const Candidate& candidate) { return may_pass(candidate.reason); });
    plan_.outcome = may ? Outcome::Waiting : Outcome::Unplaceable;
  }

  // What depends on where it runs: the pool's storage class, and one or many writers.
  void finish_checkpoint() {
    CheckpointPlan& checkpoint = plan_.checkpoint;
    const Candidate* best = plan_.best();
    if (checkpoint.claim.empty() || checkpoint.existing) return;
    if (!checkpoint.storage_class && best != nullptr && !best->pool->storage_classes.empty()) {
      checkpoint.storage_class = best->pool->storage_classes.front();
    }
    if (checkpoint.access_modes.empty()) {
      checkpoint.access_modes = {best != nullptr && best->nodes() > 1 ? "ReadWriteMany" : "ReadWriteOnce"};
    }
  }

  void add_notes() {
    std::set<std::string> currencies;
    for (const Candidate& candidate : plan_.ranked) {
      if (candidate.verdict == Verdict::Refused) continue;
      const auto& price = candidate.pool->price;
      if (price) currencies.insert(price->currency);
      if (price && price->stale()) {
        plan_.notes.push_back("the price of " + candidate.pool->name + " is " + std::to_string(*price->age_days) +
                              " days old (" + price->as_of.value_or("") + ")");
      }
      if (!candidate.pool->price_problem.empty()) {
        plan_.notes.push_back(candidate.pool->name + ": " + candidate.pool->price_problem);
      }
    }
    if (currencies.size() > 1) {
      plan_.notes.push_back("prices are in " + join({currencies.begin(), currencies.end()}, ", ") +
                            ": not compared with each other, " + plan_.policy.currency + " ranks first");
    }
    if (plan_.policy.sizing.override_refused) {
      plan_.notes.push_back("spec.memory.overrideMiBPerGPU is ignored: " + plan_.policy.called() +
                            " does not allow it");
    }
    for (std::string& note : limits_not_checked(request_, plan_.policy, others_))
      plan_.notes.push_back(std::move(note));
  }

  const Request& request_;
  const Inventory& inventory_;
  const Ledger& ledger_;
  PodNeeds needs_;
  SizedLayouts layouts_;
  bool escalated_ = false;
  Usage others_;
  Plan plan_;
};

}  // namespace

const Candidate* Plan::best() const {
  if (ranked.empty() || ranked.front().verdict == Verdict::Refused) return nullptr;
  return &ranked.front();
}

const Candidate* Plan::chosen() const { return outcome == Outcome::Placed ? best() : nullptr; }

Plan plan(const Request& request, const Inventory& inventory, const std::vector<api::PlacementPolicy>& policies,
          const Ledger& ledger, TimePoint now) {
  const EffectivePolicy stated = stated_policy(request.job, policies);
  Plan plan = Planner(request, inventory, in_effect(stated, request.job), ledger, now).run();
  plan.stated = stated;
  if (stated.mode == api::PolicyMode::Enforce) return plan;
  EffectivePolicy enforced = stated;
  enforced.mode = api::PolicyMode::Enforce;
  std::vector<std::string> lines =
      not_enforced(plan, Planner(request, inventory, std::move(enforced), ledger, now).run());
  std::vector<std::string>& where = stated.mode == api::PolicyMode::Warn ? plan.notes : plan.dry_run;
  where.insert(where.end(), lines.begin(), lines.end());
  return plan;
}

Promise promise_of(const Request& request, const Candidate& chosen, std::int64_t attempt) {
  Promise promise;
  promise.job_uid = request.job.metadata.uid;
  promise.namespaceName = request.job.metadata.namespaceName;
  promise.job = request.job.metadata.name;
  promise.attempt = attempt;
  promise.pool = chosen.pool->name;
  promise.zone = chosen.zone;
  if (chosen.layout) {
    promise.gpus_per_node = std::min(chosen.layout->gpus, chosen.layout->gpus_per_node);
    promise.nodes = chosen.layout->nodes();
  }
  promise.cost_per_hour = chosen.price_per_hour;
  promise.currency = chosen.pool->price ? chosen.pool->price->currency : "USD";
  promise.pod = requests_besides_gpus(request.job.spec.podTemplate);
  return promise;
}

}  // namespace loadline::placement
