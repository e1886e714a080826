// The checkpoint claim: one, under a fixed name, that outlives attempts and (unless told otherwise) the job.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.h"
#include "operator/render.h"
#include "operator/resources.h"
#include "operator/rules.h"
#include "placement/policy.h"

namespace loadline::controller {
namespace {

namespace core = kube::resources;
using nlohmann::json;

constexpr const char* kReady = api::condition::kCheckpointReady;

api::RetainPolicy retain_policy(const Draft& draft) {
  const auto& checkpoint = draft.spec.checkpoint;
  if (checkpoint && checkpoint->volume && checkpoint->volume->retain) return *checkpoint->volume->retain;
  const auto policy = placement::effective_policy(draft.seen.job, draft.seen.cluster->policies);
  return policy.checkpoint.retain.value_or(api::RetainPolicy::Retain);
}

std::string text_at(const json& root, kube::JsonPath path) {
  return std::string(kube::string_at(root, path).value_or(""));
}

std::int64_t requested_bytes(const kube::Object& claim) {
  return parse_quantity(text_at(claim.json(), {"spec", "resources", "requests", "storage"})).value_or(0);
}

/// The size the spec asks for in so many words; growing a claim is never done by an estimate that changed.
std::optional<std::int64_t> asked_bytes(const api::TrainingJobSpec& spec) {
  if (!spec.checkpoint || !spec.checkpoint->volume || !spec.checkpoint->volume->size) return std::nullopt;
  return parse_quantity(*spec.checkpoint->volume->size);
}

bool claim_refused(const Draft& draft) {
  return draft.seen.refusal && draft.seen.refusal->plural == core::kPersistentVolumeClaims.plural;
}

/// Grows our claim when the spec asks for more. True when the server will not: said once, and not tried again for the
/// same size, as the condition that says so is still there.
bool cannot_grow(Draft& draft) {
  const kube::Object& claim = draft.seen.claim;
  const auto asked = asked_bytes(draft.spec);
  if (!asked || !claim_is_ours(draft.seen) || *asked <= requested_bytes(claim)) return false;
  const std::string size = *draft.spec.checkpoint->volume->size;
  const std::string wish = "claim " + claim.name() + " should grow to " + size;
  const api::Condition* before = find_condition(draft.status, kReady);
  if (before != nullptr && before->reason == "ResizeUnsupported" && before->message.rfind(wish + ",", 0) == 0) {
    return true;
  }
  if (claim_refused(draft)) {
    draft.set_false(kReady, "ResizeUnsupported",
                    wish + ", but the server refuses; training goes on with " + gib(requested_bytes(claim)) + ": " +
                        draft.seen.refusal->message);
    return true;
  }
  draft.after_status.emplace_back(MergePatch{core::kPersistentVolumeClaims,
                                             claim.key(),
                                             {{"metadata", {{"resourceVersion", claim.resource_version()}}},
                                              {"spec", {{"resources", {{"requests", {{"storage", size}}}}}}}}});
  draft.tell(kube::Event::Type::Normal, "CheckpointResized", "Resize", "claim " + claim.name() + " grows to " + size);
  return false;
}

void show_claim(Draft& draft) {
  const kube::Object& claim = draft.seen.claim;
  const std::string phase = text_at(claim.json(), {"status", "phase"});
  const std::string zone = draft.status.checkpoint->zone.value_or("");
  const std::string size = gib(requested_bytes(claim), 0);
  if (phase == "Bound") {
    draft.set_true(kReady, "Bound",
                   "claim " + claim.name() + " (" + size + ") is bound to " +
                       text_at(claim.json(), {"spec", "volumeName"}) + (zone.empty() ? "" : " in zone " + zone));
  } else if (phase == "Lost") {
    draft.set_false(kReady, "VolumeLost", "claim " + claim.name() + " has lost its volume");
  } else {
    draft.condition(kReady, api::ConditionStatus::Unknown, "Pending",
                    "claim " + claim.name() + " (" + size + ") is not bound yet; a class that waits for its first " +
                        "consumer binds when the gang is scheduled");
  }
}

/// Blocks the start with words for the user.
bool blocked(Draft& draft, const char* reason, const std::string& message) {
  draft.set_false(kReady, reason, message);
  draft.status.phase = "Waiting";
  draft.look_again_in(std::chrono::seconds(60));
  return false;
}

}  // namespace

bool claim_is_ours(const Observed& seen) {
  return seen.claim && seen.claim.label(api::label::kJobUID) == seen.stored.uid();
}

std::optional<placement::SeenClaim> claim_to_mount(const Observed& seen) {
  const auto& checkpoint = seen.job.spec.checkpoint;
  if (!checkpoint || !seen.claim || seen.claim.deleting()) return std::nullopt;
  const bool users = checkpoint->volume && checkpoint->volume->claimName;
  if (!users && !claim_is_ours(seen)) return std::nullopt;
  placement::SeenClaim claim;
  claim.name = seen.claim.name();
  for (const json& mode : kube::array_at(seen.claim.json(), {"spec", "accessModes"})) {
    if (mode.is_string()) claim.access_modes.push_back(mode.get<std::string>());
  }
  claim.storage_class = text_at(seen.claim.json(), {"spec", "storageClassName"});
  return claim;
}

std::string pinned_zone(const kube::Object& volume) {
  if (!volume) return "";
  for (const json& term : kube::array_at(volume.json(), {"spec", "nodeAffinity", "required", "nodeSelectorTerms"})) {
    for (const json& match : kube::array_at(term, {"matchExpressions"})) {
      const std::string key = text_at(match, {"key"});
      const bool is_zone = key == "topology.kubernetes.io/zone" || key == "failure-domain.beta.kubernetes.io/zone" ||
                           (key.rfind("topology.", 0) == 0 && key.size() > 5 && key.substr(key.size() - 5) == "/zone");
      const json& values = kube::array_at(match, {"values"});
      if (is_zone && text_at(match, {"operator"}) == "In" && values.size() == 1 && values[0].is_string()) {
        return values[0].get<std::string>();
      }
    }
  }
  return "";
}

void follow_claim(Draft& draft) {
  auto& checkpoint = draft.status.checkpoint;
  if (!checkpoint || !checkpoint->claim || !draft.seen.claim || draft.seen.claim.name() != *checkpoint->claim) return;
  const std::string zone = pinned_zone(draft.seen.volume);
  checkpoint->zone = zone.empty() ? std::nullopt : std::optional<std::string>(zone);
  if (!cannot_grow(draft)) show_claim(draft);
}

bool ensure_claim(Draft& draft, const placement::CheckpointPlan& plan) {
  if (plan.claim.empty()) return true;
  const kube::Object& claim = draft.seen.claim;
  if (claim && claim.deleting()) {
    return blocked(draft, "ClaimTerminating", "claim " + claim.name() + " is being deleted; waiting for it to go");
  }
  if (plan.existing) {
    if (claim) return true;
    return blocked(draft, "ClaimNotFound",
                   "claim " + plan.claim +
                       " of spec.checkpoint.volume.claimName does not exist in "
                       "namespace " +
                       draft.seen.stored.ns());
  }
  if (claim && !claim_is_ours(draft.seen)) {
    return blocked(draft, "ClaimOfEarlierJob",
                   "claim " + claim.name() +
                       " holds the checkpoints of an earlier job of this name. To go on from them set "
                       "spec.checkpoint.volume.claimName: " +
                       claim.name() + "; to start afresh delete the claim");
  }
  if (!claim && claim_refused(draft)) {
    return blocked(draft, "ClaimRefused",
                   "the API server refuses claim " + plan.claim + ": " + draft.seen.refusal->message);
  }
  if (!claim) {
    draft.before_status.emplace_back(
        Create{core::kPersistentVolumeClaims, render_claim(draft.seen.job, plan), draft.seen.stored.uid()});
    draft.condition(kReady, api::ConditionStatus::Unknown, "Created", "claim " + plan.claim + " is being made");
  }
  return true;
}

bool claim_goes_with_job(const Draft& draft) {
  switch (retain_policy(draft)) {
    case api::RetainPolicy::Delete: return true;
    case api::RetainPolicy::Retain: return false;
    case api::RetainPolicy::RetainOnFailure: return draft.is_true(api::condition::kSucceeded);
  }
  return false;
}

bool ensure_finalizer(Draft& draft, api::RetainPolicy retain) {
  if (retain == api::RetainPolicy::Retain || draft.seen.stored.has_finalizer(api::kFinalizer)) return false;
  json finalizers = kube::array_at(draft.seen.stored.json(), {"metadata", "finalizers"});
  finalizers.push_back(api::kFinalizer);
  draft.leave_status();  // this write changes the version that one would rest on
  draft.before_status.emplace_back(MergePatch{
      resources::kTrainingJobs,
      draft.seen.stored.key(),
      {{"metadata", {{"finalizers", finalizers}, {"resourceVersion", draft.seen.stored.resource_version()}}}}});
  return true;
}

}  // namespace loadline::controller
