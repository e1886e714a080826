// The verdict on a TrainingJob: its spec, its template, and whether any pool can hold it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "estimator/advice.h"
#include "estimator/explain.h"
#include "estimator/workload.h"
#include "kube/json_read.h"
#include "placement/explain.h"
#include "placement/job_check.h"
#include "placement/plan.h"
#include "webhook/job_rules.h"
#include "webhook/kinds.h"

namespace loadline::webhook {
namespace {

using nlohmann::json;

void append(std::vector<FieldError>& errors, std::vector<FieldError> more) {
  errors.insert(errors.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<FieldError> job_errors(const json& object) {
  std::vector<FieldError> errors = name_errors(object);
  append(errors, placement::check_job(object));
  return errors;
}

/// The need alone, when there is no pool to compare it with.
std::vector<std::string> sizing_alone(const api::TrainingJob& job, const estimator::Workload& workload) {
  const std::int64_t gpus = job.spec.gpus ? job.spec.gpus->count.value_or(job.spec.gpus->min.value_or(1)) : 1;
  estimator::Capacity capacity;
  capacity.gpus_per_node = std::min<std::int64_t>(gpus, 8);
  const auto sized = estimator::best_layout(workload, gpus, estimator::constraints_from(job.spec), capacity);
  if (!sized) return {};
  return {estimator::summary(workload, sized->layout, sized->estimate)};
}

/// Only a policy's word against it: the object is right, and the answer 403.
bool is_policy_matter(const std::vector<FieldError>& refusals) {
  return std::all_of(refusals.begin(), refusals.end(),
                     [](const FieldError& error) { return error.type == FieldError::Type::Forbidden; });
}

/// Sizes and plans; refuses only when the request changes what decides it.
void judge_plan(const Request& review, const Snapshot& snapshot, bool may_refuse, Verdict& verdict) {
  const auto parsed = api::parse_training_job(*review.object, api::UnknownFields::Ignore);
  if (!parsed || !placement::check_spec(parsed->spec).empty()) return;
  api::TrainingJob job = *parsed;
  if (job.metadata.namespaceName.empty()) job.metadata.namespaceName = review.namespaceName;
  const auto workload = estimator::workload_from(job.spec);
  if (!workload) return;
  if (!snapshot.complete || snapshot.inventory.pools.empty()) {
    verdict.warnings = sizing_alone(job, *workload);
    verdict.warnings.emplace_back(snapshot.complete
                                      ? "no GPU pool is known yet: where it fits is judged when there is one"
                                      : "pools are still being read: where it fits is judged before it starts");
    return;
  }
  const placement::Request request{job, *workload, {}, {}, {}, {}, {}, 0};
  const placement::Plan plan =
      placement::plan(request, snapshot.inventory, snapshot.policies, snapshot.ledger, snapshot.now);
  std::vector<FieldError> refusals = placement::refusals(request, plan);
  if (refusals.empty()) {
    // A job that is refused for something else will not run anywhere: where it would is not said.
    if (!verdict.allowed()) return;
    verdict.warnings = placement::apply_warnings(request, plan);
    for (std::string& note : placement::template_notes(job.spec.podTemplate))
      verdict.warnings.push_back(std::move(note));
  } else if (!may_refuse) {
    for (const FieldError& refusal : refusals) verdict.warnings.push_back("cannot run as it is: " + to_string(refusal));
  } else {
    const bool policy_only = verdict.causes.empty() && is_policy_matter(refusals);
    verdict.kind = policy_only ? Verdict::Kind::Forbidden : Verdict::Kind::Invalid;
    append(verdict.causes, std::move(refusals));
  }
}

bool resumes(const json& old_spec, const json& new_spec) {
  return kube::bool_at(old_spec, {"suspend"}).value_or(false) && !kube::bool_at(new_spec, {"suspend"}).value_or(false);
}

}  // namespace

std::vector<FieldError> errors_brought_in(const json& fresh, const json* old,
                                          const std::function<std::vector<FieldError>(const json&)>& errors_of) {
  std::vector<FieldError> errors = errors_of(fresh);
  if (old == nullptr || errors.empty()) return errors;
  const std::vector<FieldError> before = errors_of(*old);
  std::erase_if(
      errors, [&](const FieldError& error) { return std::find(before.begin(), before.end(), error) != before.end(); });
  return errors;
}

Verdict validate_job(const Request& request, const Snapshot& snapshot) {
  const json& object = *request.object;
  const json& spec = kube::object_at(object, {"spec"});
  const json* old_spec = request.old_object != nullptr ? &kube::object_at(*request.old_object, {"spec"}) : nullptr;
  if (old_spec != nullptr && *old_spec == spec) return {};
  Verdict verdict;
  if (old_spec != nullptr) verdict.causes = immutability_errors(*old_spec, spec);
  const bool rewrites = !verdict.causes.empty();
  // What is going away needs no plan, but must not be rewritten on its way either.
  if (!request.deleting()) append(verdict.causes, errors_brought_in(object, request.old_object, job_errors));
  if (!verdict.causes.empty()) verdict.kind = Verdict::Kind::Invalid;
  if (request.deleting() || rewrites) return verdict;

  const bool changes = old_spec == nullptr || plan_changes(*old_spec, spec);
  if (changes || resumes(*old_spec, spec)) judge_plan(request, snapshot, changes, verdict);
  return verdict;
}

}  // namespace loadline::webhook
