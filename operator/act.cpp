#include "operator/act.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.h"

namespace loadline::controller {
namespace {

using Kind = ActOutcome::Kind;

constexpr int kForbidden = 403, kInvalid = 422;

/// Ours by owner, or by label where a child must have no owner.
bool belongs_to(const kube::Object& child, const std::string& uid) {
  const auto owner = child.controller();
  return owner ? owner->uid == uid : child.label(api::label::kJobUID) == uid;
}

kube::ObjectKey key_of(const nlohmann::json& object) {
  return {std::string(kube::string_at(object, {"metadata", "namespace"}).value_or("")),
          std::string(kube::string_at(object, {"metadata", "name"}).value_or(""))};
}

/// A failed write of a child; with a refusal when the server understood it and would not have it.
ActOutcome refused(const kube::ApiError& error, const kube::Resource& resource, const std::string& name) {
  ActOutcome outcome{Kind::Retry, error.message, std::nullopt};
  if (error.http_status == kInvalid || error.http_status == kForbidden) {
    outcome.refusal = Refusal{resource.plural, name, cut_utf8(error.message, 400), error.http_status == kInvalid};
  }
  return outcome;
}

}  // namespace

Actor::Actor(kube::Client& client, kube::EventRecorder& events, std::function<bool()> may_write, Written written)
    : client_(client), events_(events), may_write_(std::move(may_write)), written_(std::move(written)) {}

ActOutcome Actor::carry_out(const std::vector<Action>& actions) const {
  for (const Action& action : actions) {
    if (!may_write_()) return {Kind::Stop, "not leading", std::nullopt};
    ActOutcome outcome = std::visit([this](const auto& a) { return run(a); }, action);
    if (outcome.kind == Kind::Done) continue;
    outcome.problem = describe(action) + ": " + outcome.problem;
    return outcome;
  }
  return {};
}

ActOutcome Actor::judge(const kube::Answer<kube::Object>& answer, const kube::Resource& resource) const {
  if (!answer) return {Kind::Retry, answer.error().message, std::nullopt};
  if (*answer) written_(resource, *answer);
  return {};
}

ActOutcome Actor::run(const Create& action) const {
  const auto created = client_.create(action.resource, action.object);
  if (created) return judge(created, action.resource);
  const kube::ApiError& error = created.error();
  // The create may have been carried out although we saw no answer, now or before a restart: look.
  if (error.already_exists() || error.outcome_unknown) {
    const auto found = client_.get(action.resource, key_of(action.object));
    if (found && belongs_to(*found, action.owner_uid)) return judge(found, action.resource);
    if (found) return {Kind::Wait, "the name is taken by another object", std::nullopt};
    return {Kind::Retry, found.error().message, std::nullopt};
  }
  return refused(error, action.resource, key_of(action.object).name);
}

ActOutcome Actor::run(const WriteStatus& action) const {
  const auto written = client_.update(action.resource, action.object, {.subresource = "status"});
  if (!written && written.error().not_found()) return {};  // deleted meanwhile: there is nothing to tell anybody
  if (!written && written.error().http_status == kInvalid) {
    // What is stored breaks the schema of now, so no status can ever tell of it.
    events_.record(
        kube::reference_to(action.resource, kube::Object(action.object)),
        {kube::Event::Type::Warning, "StatusRefused", "WriteStatus",
         "the API server refuses any status as long as the object is not valid: " + written.error().message});
  }
  return judge(written, action.resource);
}

ActOutcome Actor::run(const MergePatch& action) const {
  const auto patched = client_.merge_patch(action.resource, action.key, action.patch);
  if (patched) return judge(patched, action.resource);
  if (patched.error().not_found()) return {};
  return refused(patched.error(), action.resource, action.key.name);
}

ActOutcome Actor::run(const Remove& action) const {
  kube::DeleteOptions options;
  options.uid = action.uid;
  options.grace_seconds = action.grace_seconds;
  const auto removed = client_.remove(action.resource, action.key, options);
  // Another uid under the name: ours is gone.
  if (!removed && removed.error().http_status == 409) return {};
  if (!removed) return {Kind::Retry, removed.error().message, std::nullopt};
  return {};
}

ActOutcome Actor::run(const Tell& action) const {
  events_.record(action.regarding, action.event);
  return {};
}

}  // namespace loadline::controller
