#include "operator/decide.h"

#include "api/names.h"
#include "operator/names.h"
#include "operator/rules.h"
#include "operator/spec_hash.h"

namespace loadline::controller {
namespace {

bool suspended(const Draft& draft) { return draft.spec.suspend.value_or(false); }

/// spec.activeDeadlineSeconds, counted from the first attempt's start.
bool past_deadline(Draft& draft) {
  if (!draft.spec.activeDeadlineSeconds || !draft.status.startTime) return false;
  const auto start = parse_rfc3339(*draft.status.startTime);
  if (!start) return false;
  const TimePoint deadline = *start + std::chrono::seconds(*draft.spec.activeDeadlineSeconds);
  if (draft.seen.now >= deadline) return true;
  draft.look_again_at(deadline);
  return false;
}

/// Whether the job was suspended, changed and resumed between two looks of ours. All that is left to see is a live
/// attempt of another spec. Under a generation that was looked at already it is not the user's doing: the API server
/// fills the defaults of a newer schema into what it has stored.
bool changed_unseen(Draft& draft) {
  const auto& made_from = draft.live()->specHash;
  const bool looked_at = draft.status.observedGeneration == draft.seen.stored.generation();
  return made_from && !looked_at && *made_from != spec_hash(draft.seen.stored);
}

/// What ends a live attempt from our side.
void stop_if_asked(Draft& draft, bool admitted) {
  if (draft.live() == nullptr) return;
  if (past_deadline(draft)) {
    end_attempt(draft, api::AttemptCause::Deadline,
                "spec.activeDeadlineSeconds of " + std::to_string(*draft.spec.activeDeadlineSeconds) + " s has passed");
  } else if (suspended(draft)) {
    end_attempt(draft, api::AttemptCause::Suspended,
                "spec.suspend was set; the trainer is asked to write a checkpoint");
  } else if (admitted && changed_unseen(draft)) {
    const std::string what = "the spec was changed while the operator did not look; the next attempt is made from it";
    end_attempt(draft, api::AttemptCause::Suspended, what);
    draft.tell(kube::Event::Type::Normal, "SpecChanged", "EndAttempt", what);
  }
}

void show_suspended(Draft& draft, bool gang_gone) {
  draft.status.phase = "Suspended";
  const char* message =
      gang_gone ? "spec.suspend is true; no GPUs are held" : "spec.suspend is true; the gang is ending";
  if (!draft.is_true(api::condition::kSuspended)) {
    draft.tell(kube::Event::Type::Normal, "Suspended", "Suspend", message);
  }
  draft.set_true(api::condition::kSuspended, "SuspendedBySpec", message);
}

void note_resumed(Draft& draft) {
  if (!draft.is_true(api::condition::kSuspended)) return;
  draft.set_false(api::condition::kSuspended, "Resumed", "spec.suspend is false");
  draft.tell(kube::Event::Type::Normal, "Unsuspended", "Resume", "spec.suspend is false; the job is placed again");
}

/// No attempt lives: conclude, wait for the old gang, for its time, or start the next.
void next_attempt(Draft& draft, bool admitted) {
  const bool gang_gone = clear_gang(draft);
  if (is_finished(draft.status) || conclude(draft)) return;
  if (!admitted) {
    draft.status.phase = "Invalid";
    return;
  }
  if (suspended(draft)) {
    if (gang_gone) size(draft);
    return show_suspended(draft, gang_gone);
  }
  note_resumed(draft);
  if (past_deadline(draft)) {
    return fail(draft, "DeadlineExceeded", "spec.activeDeadlineSeconds has passed while no attempt was running");
  }
  if (!gang_gone) {
    draft.status.phase = "Restarting";
    return;  // its pods tell us when they end
  }
  if (const auto when = restart_time(draft.spec, draft.status); when && *when > draft.seen.now) {
    draft.status.phase = "Restarting";
    draft.set_false(api::condition::kPlaced, "BackingOff", "the next attempt starts at " + rfc3339(*when));
    return draft.look_again_at(*when);
  }
  place(draft);
}

}  // namespace

Decision decide(const Observed& seen) {
  if (!seen.ours) return {};
  Draft draft(seen);
  if (seen.stored.deleting()) {
    clean_up(draft);
  } else if (is_finished(draft.status)) {
    after_the_end(draft);
  } else {
    // A spec that the rules of now refuse starts nothing; a gang that it started under older ones is followed to its
    // end.
    const bool admitted = admit(draft);
    if (admitted) follow_claim(draft);
    follow_attempt(draft);
    stop_if_asked(draft, admitted);
    if (draft.live() == nullptr) next_attempt(draft, admitted);
    if (draft.live() != nullptr) keep_children(draft, admitted);
  }
  return draft.finish();
}

}  // namespace loadline::controller
