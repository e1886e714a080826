// What happened to the live attempt since its record was written.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.h"
#include "operator/render.h"
#include "operator/rules.h"

namespace loadline::controller {
namespace {

using api::AttemptCause;
using EventType = kube::Event::Type;

/// All pods of a gang must run within this after its record, booting of nodes not counted.
constexpr std::chrono::minutes kStartDeadline{10};
/// A pod that is being deleted while its Job says nothing: the Job's own word may be on its way.
constexpr std::chrono::seconds kDeletionGrace{5};
/// How often a live attempt is looked at when nothing tells of a change: the log grows, and a silent node becomes a
/// lost one by the passing of time alone.
constexpr std::chrono::seconds kLookPeriod{30};

std::string capacity_of(const Draft& draft) {
  const auto& placement = draft.status.placement;
  return placement && placement->capacityType ? std::string(api::name_of(*placement->capacityType)) : "";
}

std::string of_all(std::size_t part, std::size_t all, const char* what) {
  return std::to_string(part) + " of " + std::to_string(all) + " pods " + what;
}

std::string whole_gang(std::size_t pods) {
  return pods == 1 ? "its one pod runs" : "all " + std::to_string(pods) + " pods run";
}

/// A host limit that was passed is passed again; only the user can raise it.
std::string host_memory_advice(const Draft& draft, const std::string& detail) {
  const auto limit = trainer_memory_limit(draft.spec.podTemplate);
  return detail + ". Raise resources.limits.memory of the container trainer" + (limit ? " (now " + *limit + ")" : "") +
         ", or use fewer data-loader workers or no offload";
}

void end_by(Draft& draft, const Ending& ending) {
  end_attempt(draft, ending.cause, ending.detail);
  if (ending.fatal && ending.cause == AttemptCause::OutOfMemory) {
    fail(draft, "HostOutOfMemory", host_memory_advice(draft, ending.detail));
  }
}

/// The Job has failed or is failing: find out why, waiting a little where better evidence may come.
void end_failed(Draft& draft, const std::vector<Member>& gang, const JobView& job) {
  const auto ending = classify(evidence(gang, job, capacity_of(draft)));
  const bool all_over = std::all_of(gang.begin(), gang.end(), [](const Member& m) { return m.over; });
  const auto settle = ending ? ending->settle : std::chrono::seconds(90);
  if (!all_over && job.failed_at && draft.seen.now - *job.failed_at < settle) {
    return draft.look_again_at(*job.failed_at + settle);
  }
  if (ending) return end_by(draft, *ending);
  end_attempt(draft, AttemptCause::Infrastructure,
              "the gang ended without a trace of why (" + (job.reason.empty() ? "no reason" : job.reason) + ": " +
                  (job.message.empty() ? "no message" : job.message) + ")");
}

/// A member that is lost ends the gang, whatever rank 0 does.
bool end_if_member_lost(Draft& draft, const std::vector<Member>& gang, const JobView& job) {
  const bool lost = std::any_of(gang.begin(), gang.end(), [](const Member& m) {
    return m.phase != "Succeeded" && (m.node_view.health == NodeHealth::Gone || m.node_view.health == NodeHealth::Lost);
  });
  if (lost) {
    if (const auto ending = classify(evidence(gang, job, capacity_of(draft)))) {
      end_by(draft, *ending);
      return true;
    }
  }
  for (const Member& m : gang) {
    const auto deleted = m.pod.deletion_time();
    if (!deleted || m.phase == "Succeeded") continue;
    // deletionTimestamp is when the grace period ends; the request came that much earlier.
    const auto grace = kube::int_at(m.pod.json(), {"metadata", "deletionGracePeriodSeconds"}).value_or(0);
    const TimePoint since = *deleted - std::chrono::seconds(grace);
    if (draft.seen.now - since < kDeletionGrace) {
      draft.look_again_at(since + kDeletionGrace);
      continue;
    }
    const auto ending = classify(evidence(gang, job, capacity_of(draft)));
    if (ending && !m.terminal) {
      end_by(draft, *ending);
    } else {
      end_attempt(draft, AttemptCause::Infrastructure, "pod " + m.pod.name() + " was deleted from outside");
    }
    return true;
  }
  return false;
}

/// Time that the pool's nodes may need to boot, when the plan counts on scaling.
std::chrono::seconds boot_time(const Draft& draft, const std::string& pool) {
  const placement::Pool* found = draft.seen.cluster->inventory.find(pool);
  return std::chrono::seconds(found == nullptr ? 0 : std::clamp<std::int64_t>(found->boot_seconds, 0, 7200));
}

void end_if_never_started(Draft& draft, api::AttemptStatus& attempt, const std::vector<Member>& gang,
                          const JobView& job, std::size_t running) {
  const auto start = parse_rfc3339(attempt.startTime.value_or(""));
  if (!start) return;
  const auto patience = kStartDeadline + boot_time(draft, attempt.pool);
  if (draft.seen.now < *start + patience) return draft.look_again_at(*start + patience);
  if (const auto ending = classify(evidence(gang, job, capacity_of(draft)))) {
    return end_by(draft, *ending);
  }
  std::string why = "nothing says why";
  for (const Evidence& e : evidence(gang, job, "")) {
    if (!e.message.empty()) why = e.message;
  }
  end_attempt(draft, AttemptCause::Infrastructure,
              of_all(running, static_cast<std::size_t>(attempt.nodes.value_or(1)), "were running after ") +
                  duration_text(std::chrono::duration<double>(patience).count()) + ": " + why);
}

void show_running(Draft& draft, api::AttemptStatus& attempt, std::size_t running) {
  if (!attempt.runningTime) {
    attempt.runningTime = draft.now_text();
    draft.tell(EventType::Normal, attempt.number == 1 ? "Running" : "Resumed", "Run",
               "attempt " + std::to_string(attempt.number) + ": " + whole_gang(running) + " on " + attempt.pool);
  }
  draft.status.phase = "Running";
  draft.set_true(api::condition::kRunning, "GangRunning",
                 "attempt " + std::to_string(attempt.number) + ": " + whole_gang(running) + " on " + attempt.pool);
}

void follow_live(Draft& draft, api::AttemptStatus& attempt, const std::vector<Member>& gang, const JobView& job) {
  const auto running = static_cast<std::size_t>(std::count_if(
      gang.begin(), gang.end(), [](const Member& m) { return m.phase == "Running" || m.phase == "Succeeded"; }));
  draft.look_again_in(kLookPeriod);
  if (running >= static_cast<std::size_t>(attempt.nodes.value_or(1))) {
    show_running(draft, attempt, running);
    return follow_progress(draft);
  }
  draft.status.phase = attempt.runningTime ? "Running" : "Starting";
  if (attempt.runningTime) return;
  draft.set_false(api::condition::kRunning, "Starting",
                  "attempt " + std::to_string(attempt.number) + " on " + attempt.pool + ": " +
                      of_all(running, static_cast<std::size_t>(attempt.nodes.value_or(1)), "run"));
  end_if_never_started(draft, attempt, gang, job, running);
}

/// The API server would not have the attempt's Job.
bool end_if_refused(Draft& draft, const JobView& job) {
  if (!draft.seen.refusal || job.job || draft.seen.refusal->plural == kube::resources::kPersistentVolumeClaims.plural) {
    return false;
  }
  const Refusal& refusal = *draft.seen.refusal;
  end_attempt(draft, refusal.permanent ? AttemptCause::UserFailure : AttemptCause::Infrastructure,
              "the API server refused " + refusal.plural + " " + refusal.name + ": " + refusal.message);
  return true;
}

std::int64_t* counter_of(api::EndingCounters& counters, AttemptCause cause) {
  switch (cause) {
    case AttemptCause::Preempted: return &counters.preemptions;
    case AttemptCause::Infrastructure: return &counters.infrastructure;
    case AttemptCause::UserFailure: return &counters.userFailures;
    case AttemptCause::OutOfMemory: return &counters.outOfMemory;
    case AttemptCause::PolicyEviction: return &counters.policyEvictions;
    case AttemptCause::Succeeded:
    case AttemptCause::Suspended:
    case AttemptCause::Deadline: return nullptr;
  }
  return nullptr;
}

}  // namespace

void end_attempt(Draft& draft, AttemptCause cause, const std::string& detail) {
  api::AttemptStatus* attempt = draft.live();
  if (attempt == nullptr) return;
  attempt->cause = cause;
  attempt->endTime = draft.now_text();
  attempt->detail = detail;
  if (draft.status.progress && draft.status.progress->step) attempt->lastStep = draft.status.progress->step;
  api::EndingCounters counters = draft.status.endings.value_or(api::EndingCounters{});
  if (std::int64_t* counter = counter_of(counters, cause)) ++*counter;
  draft.status.endings = counters;
  draft.status.phase = "Restarting";
  const std::string word(api::name_of(cause));
  draft.set_false(api::condition::kRunning, word, "attempt " + std::to_string(attempt->number) + " ended: " + detail);
  if (cause != AttemptCause::Succeeded && cause != AttemptCause::Suspended) {
    draft.tell(EventType::Warning, word, "EndAttempt",
               "attempt " + std::to_string(attempt->number) + " on " + attempt->pool + " ended: " + detail);
  }
}

void follow_attempt(Draft& draft) {
  api::AttemptStatus* attempt = draft.live();
  if (attempt == nullptr) return;
  const JobView job = view_job(draft.seen, attempt->number);
  const std::vector<Member> gang = members(draft.seen, attempt->number);
  if (end_if_refused(draft, job)) return;
  if (job.job && !attempt->jobUID) attempt->jobUID = job.job.uid();
  if (job.complete) {
    follow_progress(draft);
    return end_attempt(draft, AttemptCause::Succeeded, "every rank ended with exit code 0");
  }
  if (job.failing) return end_failed(draft, gang, job);
  if (attempt->jobUID && (job.job.uid() != *attempt->jobUID || job.job.deleting())) {
    return end_attempt(draft, AttemptCause::Infrastructure, "the attempt's Job was deleted from outside");
  }
  if (end_if_member_lost(draft, gang, job)) return;
  follow_live(draft, *attempt, gang, job);
}

}  // namespace loadline::controller
