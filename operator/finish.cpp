// The end of a job: by success, by failure, by deletion.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.h"
#include "operator/resources.h"
#include "operator/rules.h"

namespace loadline::controller {
namespace {

using EventType = kube::Event::Type;

void finish(Draft& draft, const char* phase, const std::string& reason, const std::string& message) {
  draft.status.phase = phase;
  draft.status.completionTime = draft.now_text();
  draft.set_true(api::condition::kFinished, reason, message);
  draft.set_false(api::condition::kRunning, reason, "no attempt runs any more");
  if (draft.spec.ttlSecondsAfterFinished) {
    draft.look_again_in(std::chrono::seconds(*draft.spec.ttlSecondsAfterFinished));
  }
}

}  // namespace

void succeed(Draft& draft, const std::string& message) {
  if (draft.status.progress && draft.status.progress->totalSteps) draft.status.progress->percent = "100%";
  finish(draft, "Succeeded", "Succeeded", message);
  draft.set_true(api::condition::kSucceeded, "Succeeded", message);
  draft.tell(EventType::Normal, "Succeeded", "Finish", message);
}

void fail(Draft& draft, const std::string& reason, const std::string& message) {
  finish(draft, "Failed", reason, message);
  draft.set_true(api::condition::kFailed, reason, message);
  draft.set_false(api::condition::kSucceeded, reason, message);
  draft.tell(EventType::Warning, "Failed", "Finish", message);
}

void after_the_end(Draft& draft) {
  clear_gang(draft);
  // Only what depends on the spec's generation may still move: the job has been seen as it is.
  if (!draft.spec.ttlSecondsAfterFinished) return;
  const auto end = parse_rfc3339(draft.status.completionTime.value_or(""));
  if (!end) return;
  const TimePoint expiry = *end + std::chrono::seconds(*draft.spec.ttlSecondsAfterFinished);
  if (draft.seen.now < expiry) return draft.look_again_at(expiry);
  draft.remove(resources::kTrainingJobs, draft.seen.stored);
}

void clean_up(Draft& draft) {
  if (!draft.seen.stored.has_finalizer(api::kFinalizer)) return;  // the garbage collector ends the children
  const bool gang_gone = clear_gang(draft);
  if (!gang_gone) {
    // The status has an attempt that is live: its Job goes all the same.
    draft.look_again_in(std::chrono::seconds(10));
    return;
  }
  const kube::Object& claim = draft.seen.claim;
  if (claim && claim_is_ours(draft.seen) && claim_goes_with_job(draft) && !claim.deleting()) {
    draft.remove(kube::resources::kPersistentVolumeClaims, claim);
  }
  nlohmann::json rest = nlohmann::json::array();
  for (const nlohmann::json& f : kube::array_at(draft.seen.stored.json(), {"metadata", "finalizers"})) {
    if (f != api::kFinalizer) rest.push_back(f);
  }
  draft.after_status.emplace_back(
      MergePatch{resources::kTrainingJobs,
                 draft.seen.stored.key(),
                 {{"metadata", {{"finalizers", rest}, {"resourceVersion", draft.seen.stored.resource_version()}}}}});
}

}  // namespace loadline::controller
