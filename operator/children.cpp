// Children of the live attempt are kept; those of ended attempts are ended.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.h"
#include "operator/names.h"
#include "operator/render.h"
#include "operator/rules.h"

namespace loadline::controller {
namespace {

namespace core = kube::resources;

/// Beyond its grace period a pod is called stuck after this.
constexpr std::chrono::seconds kStuck{60};

std::int64_t attempt_of(const kube::Object& child) {
  return parse_quantity(child.label(api::label::kAttempt).value_or("0")).value_or(0);
}

bool belongs(const kube::Object& child, const std::string& uid) {
  const auto owner = child.controller();
  return owner && owner->uid == uid;
}

/// The API server has it under our name, and it is not ours: an earlier job's that is going, or somebody's.
bool taken(Draft& draft, const kube::Object& child, const char* kind) {
  if (!child || belongs(child, draft.seen.stored.uid())) return false;
  draft.set_false(
      api::condition::kRunning, "NameTaken",
      std::string(kind) + " " + child.name() + " exists and belongs to another object; waiting for it to go");
  draft.look_again_in(std::chrono::seconds(10));
  return true;
}

/// Jobs and plans of attempts before the last but one: the last ended one stays for its logs.
void remove_old(Draft& draft, std::int64_t number) {
  for (const kube::Object& job : draft.seen.jobs) {
    const std::int64_t n = attempt_of(job);
    const bool unfinished = n < number && !view_job(draft.seen, n).failing && !view_job(draft.seen, n).complete;
    if ((n < number - 1 || unfinished) && !job.deleting()) draft.remove(core::kJobs, job);
  }
  for (const kube::Object& config : draft.seen.configs) {
    if (attempt_of(config) < number - 1 && !config.deleting()) draft.remove(core::kConfigMaps, config);
  }
}

/// A pod that nobody will finish: its node is provably gone and its grace is over.
void force_if_released(Draft& draft, const Member& member) {
  const auto deleted = member.pod.deletion_time();
  if (!deleted || member.terminal || !member.node_view.released) return;
  if (draft.seen.now - *deleted < kStuck) return draft.look_again_at(*deleted + kStuck);
  draft.remove(core::kPods, member.pod, 0);
}

void say_if_stuck(Draft& draft, const Member& member) {
  const auto deleted = member.pod.deletion_time();
  if (!deleted || member.over) return;
  if (draft.seen.now - *deleted < kStuck) return draft.look_again_at(*deleted + kStuck);
  draft.set_false(api::condition::kRunning, "TerminatingStuck",
                  "pod " + member.pod.name() + " does not end on node " + member.node +
                      ": it may still write checkpoints, so no attempt starts before it is gone. Delete the Node, or "
                      "taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, if the machine is off");
}

/// A Job is made suspended, and started when its uid is in the stored status: that write was conditional, so whoever
/// made it knew the job as it is. A create that arrives after its attempt has ended starts no pod.
void start_gang(Draft& draft, const api::AttemptStatus& attempt, const kube::Object& job) {
  const auto& stored = draft.seen.job.status.attempts;
  if (stored.empty() || stored.back().number != attempt.number || stored.back().jobUID != job.uid()) return;
  if (!kube::bool_at(job.json(), {"spec", "suspend"}).value_or(false)) return;
  draft.after_status.emplace_back(
      MergePatch{core::kJobs,
                 job.key(),
                 {{"metadata", {{"resourceVersion", job.resource_version()}}}, {"spec", {{"suspend", false}}}}});
}

}  // namespace

void keep_children(Draft& draft, bool admitted) {
  api::AttemptStatus* attempt = draft.live();
  if (attempt == nullptr || !draft.status.placement || !draft.status.placement->layout) return;
  remove_old(draft, attempt->number);
  const kube::Object job = view_job(draft.seen, attempt->number).job;
  if (job) start_gang(draft, *attempt, job);
  const bool has_job = job || attempt->jobUID;
  if (!admitted) {
    if (has_job) return;
    return end_attempt(draft, api::AttemptCause::Infrastructure, "its spec is refused since; see condition Admitted");
  }

  const placement::Pool* pool = draft.seen.cluster->inventory.find(attempt->pool);
  if (pool == nullptr) {
    if (has_job) return;
    return end_attempt(draft, api::AttemptCause::Infrastructure,
                       "pool " + attempt->pool + " is gone before it started");
  }
  if (taken(draft, draft.seen.service, "Service")) return;
  const Rendering rendering{draft.seen.job, draft.status, *attempt, *pool,
                            avoided_nodes(draft.seen, attempt->number - 1)};
  if (!draft.seen.service) draft.create(core::kServices, render_service(rendering));
  const std::string plan = plan_config_name(draft.seen.job.metadata.name, attempt->number);
  const bool has_plan = std::any_of(draft.seen.configs.begin(), draft.seen.configs.end(),
                                    [&](const kube::Object& c) { return c.name() == plan; });
  if (!has_plan) draft.create(core::kConfigMaps, render_plan_config(rendering));
  if (has_job) return;
  draft.create(core::kJobs, render_job(rendering));
  if (const auto kept = user_environment(rendering); !kept.empty()) {
    draft.tell(kube::Event::Type::Normal, "EnvironmentKept", "CreateAttempt",
               "the container trainer sets " + join(kept, ", ") + " itself; these stay as they are");
  }
}

bool clear_gang(Draft& draft) {
  bool clear = true;
  for (const kube::Object& job : draft.seen.jobs) {
    const JobView view = view_job(draft.seen, attempt_of(job));
    if (view.complete || view.failing) continue;  // it makes no pods any more: those it has decide
    clear = false;
    if (!job.deleting()) draft.remove(core::kJobs, job);
  }
  for (const Member& member : members(draft.seen, 0)) {
    clear = clear && member.over;
    force_if_released(draft, member);
    say_if_stuck(draft, member);
  }
  return clear;
}

}  // namespace loadline::controller
