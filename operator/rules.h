// The rules of decide(), one file each. Internal to operator/.
//
// Thread-safety: each edits the Draft it is given and reads what that was made from; nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "operator/draft.h"
#include "operator/endings.h"
#include "operator/gang.h"
#include "placement/plan.h"

namespace loadline::controller {

// admit.cpp

/// Sets Admitted; false when the spec is invalid, and then nothing may be made from it.
bool admit(Draft& draft);

// follow.cpp

/// Takes in what happened to the live attempt: its Job's uid, running, progress, and its ending.
void follow_attempt(Draft& draft);
/// Ends the live attempt: the cause and the counter change in one write, so each ending counts once.
void end_attempt(Draft& draft, api::AttemptCause cause, const std::string& detail);

// progress.cpp

/// What the trainer's log says of its progress; nothing when it says nothing.
struct LogProgress {
  std::int64_t step = 0;
  std::optional<double> tokens, loss;
  std::optional<std::int64_t> checkpoint_step;
};
[[nodiscard]] std::optional<LogProgress> read_progress(const std::string& log_tail,
                                                       const std::optional<api::ProgressSpec>& spec);
void follow_progress(Draft& draft);

// children.cpp

/// Creates what the live attempt lacks, as far as its spec is still admitted, and starts its gang; removes what older
/// attempts left.
void keep_children(Draft& draft, bool admitted);
/// Removes what ended attempts still have running, by force where the node is provably gone.
/// True when nothing of any attempt runs any more.
bool clear_gang(Draft& draft);

// claim.cpp

/// Whether the claim carries this job's uid: made by us for this very incarnation.
[[nodiscard]] bool claim_is_ours(const Observed& seen);
/// Zone of the bound volume; empty when there is none or it is in no zone.
[[nodiscard]] std::string pinned_zone(const kube::Object& volume);
/// The claim that the next attempt would mount; absent when there is none, or ensure_claim() lets none start with it.
[[nodiscard]] std::optional<placement::SeenClaim> claim_to_mount(const Observed& seen);
/// Sets CheckpointReady from the claim as it is; grows our claim when it should be larger.
void follow_claim(Draft& draft);
/// Makes the claim of `plan` if it is missing. True when the attempt may start with what is there.
bool ensure_claim(Draft& draft, const placement::CheckpointPlan& plan);
/// Whether the claim goes when the job is deleted.
[[nodiscard]] bool claim_goes_with_job(const Draft& draft);
/// Adds our finalizer when the claim's end will need us. True when a write of it is under way.
bool ensure_finalizer(Draft& draft, api::RetainPolicy retain);

// restart.cpp

/// When the next attempt may start, by the causes of the last ones; absent: at once.
[[nodiscard]] std::optional<TimePoint> restart_time(const api::TrainingJobSpec& spec,
                                                    const api::TrainingJobStatus& status);
/// Ends the job when its last attempt's cause says so: success, limits, deadline. True when it did.
bool conclude(Draft& draft);

// place.cpp

/// Says what the job needs and whether that fits anywhere, and promises nothing: for a job that is suspended.
void size(Draft& draft);
/// Plans the next attempt from what is free now, and starts it, waits, or refuses.
void place(Draft& draft);

// finish.cpp

void succeed(Draft& draft, const std::string& message);
void fail(Draft& draft, const std::string& reason, const std::string& message);
/// A finished job: leftovers are ended, and after its time to live the job itself.
void after_the_end(Draft& draft);
/// A job being deleted: gang, then claim where it goes too, then our finalizer.
void clean_up(Draft& draft);

}  // namespace loadline::controller
