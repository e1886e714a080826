// Where the next attempt runs: planned anew each time, from what is free now and what the job has gone through.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.h"
#include "estimator/workload.h"
#include "operator/names.h"
#include "operator/rules.h"
#include "operator/spec_hash.h"
#include "placement/explain.h"

namespace loadline::controller {
namespace {

using api::AttemptCause;
using EventType = kube::Event::Type;
using placement::Candidate;
using placement::Plan;
using placement::Request;

constexpr std::size_t kAttemptsKept = 10;
/// While it waits, a job looks again this often even when nothing tells of a change.
constexpr std::chrono::seconds kWaitPeriod{60};
constexpr std::chrono::seconds kTouchPeriod{1};

double hours_between(const std::optional<std::string>& from, const std::optional<std::string>& to) {
  const auto a = parse_rfc3339(from.value_or("")), b = parse_rfc3339(to.value_or(""));
  return a && b && *b > *a ? std::chrono::duration<double, std::ratio<3600>>(*b - *a).count() : 0;
}

/// What the job has gone through, from its own record. Losses for any cause but the job's own speak against a pool.
void add_history(const Draft& draft, Request& request) {
  for (const api::AttemptStatus& a : draft.status.attempts) {
    placement::PoolHistory& pool = request.history[a.pool];
    pool.node_hours += static_cast<double>(a.nodes.value_or(1)) * hours_between(a.startTime, a.endTime);
    if (a.cause == AttemptCause::Preempted || a.cause == AttemptCause::Infrastructure) ++pool.preemptions;
  }
  if (!draft.status.attempts.empty()) request.current_pool = draft.status.attempts.back().pool;
}

/// The job leaves spot with the preemption that reaches the policy's limit; each later one renews that.
void add_escalation(const Draft& draft, const placement::EffectivePolicy& policy, Request& request) {
  const std::int64_t preemptions = draft.status.endings ? draft.status.endings->preemptions : 0;
  if (!policy.spot.max_preemptions || preemptions < std::max<std::int64_t>(*policy.spot.max_preemptions, 1)) return;
  for (auto a = draft.status.attempts.rbegin(); a != draft.status.attempts.rend(); ++a) {
    if (a->cause != AttemptCause::Preempted) continue;
    request.escalated_at = parse_rfc3339(a->endTime.value_or(""));
    return;
  }
  request.escalated_at = draft.seen.now;
}

double tokens_done(const Draft& draft) {
  const auto& progress = draft.status.progress;
  if (!progress) return 0;
  if (progress->tokens) return *progress->tokens;
  const api::TrainingSpec& t = draft.spec.training;
  if (!progress->step || !t.globalBatchSize || !t.sequenceLength) return 0;
  return static_cast<double>(*progress->step) * static_cast<double>(*t.globalBatchSize) *
         static_cast<double>(*t.sequenceLength);
}

/// Whether an attempt has run out of GPU memory with this very layout on this pool.
bool ran_out(const Draft& draft, const Candidate& c) {
  return std::any_of(draft.status.attempts.begin(), draft.status.attempts.end(), [&](const api::AttemptStatus& a) {
    return a.cause == AttemptCause::OutOfMemory && a.pool == c.pool->name && c.layout && a.gpus == c.layout->gpus &&
           a.layout == estimator::layout_text(*c.layout);
  });
}

/// The margin under which this candidate would have been refused: the estimate is known to be short by that much.
std::int64_t margin_refusing(const Candidate& c) {
  const double peak_mib = static_cast<double>(c.estimate.peak_bytes) / static_cast<double>(kMiB);
  if (peak_mib <= 0 || c.usable_mib <= 0) return 0;
  const double percent = (static_cast<double>(c.usable_mib) / peak_mib - 1) * 100;
  return static_cast<std::int64_t>(std::clamp(percent, 0.0, 1000.0)) + 2;
}

/// The job as it is to be planned: when a layout ran out of memory, with the margin that this taught.
struct Planned {
  api::TrainingJob job;
  Plan plan;
  bool exhausted = false;  ///< only layouts that ran out already are left
};

/// The job with what is known of its past. References must outlive the request.
Request request_for(const Draft& draft, const api::TrainingJob& job, const estimator::Workload& workload) {
  Request request{job, workload, {}, {}, {}, {}, {}, 0};
  add_history(draft, request);
  add_escalation(draft, placement::stated_policy(draft.seen.job, draft.seen.cluster->policies), request);
  request.pinned_zone = pinned_zone(draft.seen.volume);
  request.avoided_nodes = avoided_nodes(draft.seen, draft.status.attempt.value_or(0));
  request.tokens_done = tokens_done(draft);
  request.claim = claim_to_mount(draft.seen);
  return request;
}

Planned plan_next(const Draft& draft, const estimator::Workload& workload) {
  constexpr int kTries = 8;
  const ClusterFacts& cluster = *draft.seen.cluster;
  Planned out{draft.seen.job, {}, false};
  out.job.status = draft.status;
  for (int i = 0; i < kTries; ++i) {
    const Request request = request_for(draft, out.job, workload);
    out.plan = placement::plan(request, cluster.inventory, cluster.policies, cluster.ledger, draft.seen.now);
    const Candidate* best = out.plan.best();
    if (best == nullptr || !ran_out(draft, *best)) return out;
    api::MemorySpec memory = out.job.spec.memory.value_or(api::MemorySpec{});
    memory.marginPercent = std::max(memory.marginPercent.value_or(0) + 1, margin_refusing(*best));
    memory.overrideMiBPerGPU.reset();  // what the override said has been shown to be too little
    out.job.spec.memory = memory;
  }
  out.exhausted = true;
  return out;
}

void record_size(Draft& draft, const Request& request, const Plan& plan) {
  const bool first = !draft.status.sizing;
  const auto measured = draft.status.sizing ? draft.status.sizing->measuredPeakMiB : std::nullopt;
  draft.status.sizing = placement::sizing_status(request, plan);
  draft.status.sizing->measuredPeakMiB = measured;
  const std::string summary = draft.status.sizing->summary.value_or("");
  if (plan.best() != nullptr && !summary.empty()) {
    draft.set_true(api::condition::kSized, "Estimated", summary);
    if (first) draft.tell(EventType::Normal, "Sized", "Size", summary);
  } else {
    draft.set_false(api::condition::kSized, placement::outcome_reason(plan), placement::outcome_message(request, plan));
  }
}

void record_plan(Draft& draft, const Request& request, const Plan& plan) {
  record_size(draft, request, plan);
  draft.status.placement = placement::placement_status(request, plan);
  if (plan.checkpoint.claim.empty()) {
    draft.status.checkpoint.reset();
  } else {
    const auto before = draft.status.checkpoint.value_or(api::CheckpointStatus{});
    draft.status.checkpoint = placement::checkpoint_status(request, plan);
    draft.status.checkpoint->lastStep = before.lastStep;
    draft.status.checkpoint->zone = before.zone;
  }
}

/// The ring of attempts: the oldest goes first, but what ran out of memory is remembered longest.
void keep_ring(std::vector<api::AttemptStatus>& attempts) {
  while (attempts.size() > kAttemptsKept) {
    const auto oldest = std::find_if(attempts.begin(), attempts.end() - 1,
                                     [](const api::AttemptStatus& a) { return a.cause != AttemptCause::OutOfMemory; });
    attempts.erase(oldest == attempts.end() - 1 ? attempts.begin() : oldest);
  }
}

void start_attempt(Draft& draft, const Request& request, const Plan& plan, const Candidate& chosen) {
  api::AttemptStatus attempt;
  attempt.number = draft.status.attempt.value_or(0) + 1;
  attempt.pool = chosen.pool->name;
  attempt.jobName = attempt_job_name(draft.seen.stored.name(), attempt.number);
  attempt.layout = estimator::layout_text(*chosen.layout);
  attempt.gpus = chosen.layout->gpus;
  attempt.nodes = chosen.layout->nodes();
  attempt.startTime = draft.now_text();
  attempt.specHash = spec_hash(draft.seen.stored);
  if (attempt.number > 1 && draft.status.checkpoint) attempt.resumedFromStep = draft.status.checkpoint->lastStep;
  draft.status.attempt = attempt.number;
  if (!draft.status.startTime) draft.status.startTime = draft.now_text();
  draft.status.phase = "Starting";
  const std::string message = placement::outcome_message(request, plan);
  draft.set_true(api::condition::kPlaced, placement::outcome_reason(plan), message);
  draft.set_false(api::condition::kRunning, "Starting",
                  "attempt " + std::to_string(attempt.number) + " is being created on " + attempt.pool);
  draft.tell(EventType::Normal, "Placed", "Place", message);
  draft.tell(
      EventType::Normal, "AttemptStarted", "CreateAttempt",
      "attempt " + std::to_string(attempt.number) + ": " + placement::where_text(chosen) + ", " + *attempt.layout);
  draft.status.attempts.push_back(std::move(attempt));
  keep_ring(draft.status.attempts);
  draft.claims_capacity = true;
}

void wait(Draft& draft, const Request& request, const Plan& plan) {
  const std::string message = placement::outcome_message(request, plan);
  const std::string reason = placement::outcome_reason(plan);
  const api::Condition* before = find_condition(draft.status, api::condition::kPlaced);
  if (before == nullptr || before->reason != reason) draft.tell(EventType::Normal, "Waiting", "Place", message);
  draft.set_false(api::condition::kPlaced, reason, message);
  draft.status.phase = "Waiting";
  draft.look_again_in(kWaitPeriod);
}

/// A watch on what the plan rests on is broken: pods that came since may hold what looks free, or be an earlier
/// attempt's.
void wait_for_touch(Draft& draft) {
  draft.set_false(api::condition::kPlaced, "OutOfTouch",
                  "the API server does not tell of changes at the moment (a watch is broken), so no GPUs are promised");
  draft.status.phase = "Waiting";
  draft.look_again_in(kTouchPeriod);
}

/// What admission would have refused, had it been asked. A job that ran before waits instead: pools come and go.
bool refuse(Draft& draft, const Request& request, const Plan& plan) {
  if (plan.outcome != placement::Outcome::Unplaceable || !draft.status.attempts.empty()) return false;
  const std::vector<FieldError> errors = placement::refusals(request, plan);
  if (errors.empty()) return false;
  const std::string message = to_string(errors);
  const std::string reason = placement::outcome_reason(plan);
  const api::Condition* before = find_condition(draft.status, api::condition::kAdmitted);
  if (before == nullptr || before->reason != reason) draft.tell(EventType::Warning, "Refused", "Place", message);
  draft.set_false(api::condition::kAdmitted, reason, message);
  draft.set_false(api::condition::kPlaced, reason, placement::outcome_message(request, plan));
  draft.status.phase = "Invalid";
  draft.look_again_in(kWaitPeriod);
  return true;
}

/// After running out of memory: never the same again, so without another way the job is over.
bool fail_out_of_memory(Draft& draft, const Request& request, const Planned& planned) {
  const api::AttemptStatus* last = draft.newest();
  if (last == nullptr || last->cause != AttemptCause::OutOfMemory) return false;
  if (!planned.exhausted && planned.plan.outcome != placement::Outcome::Unplaceable) return false;
  fail(draft, "OutOfMemory",
       last->detail.value_or("GPU memory ran out") +
           ". No other layout is left that would need less: " + placement::outcome_message(request, planned.plan));
  return true;
}

}  // namespace

void size(Draft& draft) {
  const auto workload = estimator::workload_from(draft.spec);
  if (!workload) return;  // admit() has said so
  const Planned planned = plan_next(draft, *workload);
  record_size(draft, request_for(draft, planned.job, *workload), planned.plan);
}

void place(Draft& draft) {
  const auto workload = estimator::workload_from(draft.spec);
  if (!workload) return;  // admit() has said so
  const Planned planned = plan_next(draft, *workload);
  const Plan& plan = planned.plan;
  const Request request = request_for(draft, planned.job, *workload);

  if (fail_out_of_memory(draft, request, planned)) return;
  record_plan(draft, request, plan);
  if (refuse(draft, request, plan)) return;
  draft.set_true(api::condition::kAdmitted, "Valid", "the spec is complete and consistent");
  const Candidate* chosen = plan.chosen();
  if (chosen == nullptr) return wait(draft, request, plan);
  if (!draft.seen.in_touch) return wait_for_touch(draft);
  if (!plan.checkpoint.existing && !plan.checkpoint.claim.empty() && ensure_finalizer(draft, plan.checkpoint.retain)) {
    return;
  }
  if (ensure_claim(draft, plan.checkpoint)) start_attempt(draft, request, plan, *chosen);
}

}  // namespace loadline::controller
