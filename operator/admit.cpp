// A stored job is not believed: the webhook may have been off, or older. What it would refuse for the spec's own
// sake is refused here too; whether a pool can hold the job is place.cpp's question.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.h"
#include "api/unsupported.h"
#include "estimator/workload.h"
#include "operator/render.h"
#include "operator/rules.h"

namespace loadline::controller {
namespace {

using Type = FieldError::Type;

void check_least(std::vector<FieldError>& errors, const char* field, std::optional<std::int64_t> value,
                 std::int64_t least) {
  if (value && *value < least) {
    errors.push_back({Type::Invalid, field, std::to_string(*value), "must be at least " + std::to_string(least)});
  }
}

void check_duration(std::vector<FieldError>& errors, const char* field, const std::optional<std::string>& value) {
  if (value && !parse_duration(*value)) {
    errors.push_back({Type::Invalid, field, *value, "must be a duration such as 30s, 10m or 1h30m"});
  }
}

/// A name of an object in the job's own namespace: no way to reach into another.
bool is_local_name(const std::string& name) {
  return !name.empty() && name.size() <= 253 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
}

void check_template(std::vector<FieldError>& errors, const nlohmann::json& pod_template) {
  if (!pod_template.is_object()) {
    errors.push_back({Type::Required, "spec.template", "", "a pod template with a container named trainer"});
  } else if (trainer_index(pod_template) == std::nullopt) {
    errors.push_back({Type::Required, "spec.template.spec.containers", "",
                      "one container must be named trainer: it is the one Loadline completes"});
  }
}

}  // namespace

std::vector<FieldError> spec_errors(const Observed& seen) {
  std::vector<FieldError> errors = api::unsupported_fields(api::TrainingJob::kKind, seen.stored.json());
  const auto add = [&errors](const std::vector<FieldError>& more) {
    errors.insert(errors.end(), more.begin(), more.end());
  };
  if (!seen.unreadable.empty()) {
    add(seen.unreadable);
    return errors;
  }
  const api::TrainingJobSpec& spec = seen.job.spec;
  if (auto workload = estimator::workload_from(spec); !workload) add(workload.error().fields);
  check_template(errors, spec.podTemplate);
  if (spec.gpus) {
    check_least(errors, "spec.gpus.count", spec.gpus->count, 1);
    check_least(errors, "spec.gpus.min", spec.gpus->min, 1);
    check_least(errors, "spec.gpus.max", spec.gpus->max, 1);
  }
  check_least(errors, "spec.activeDeadlineSeconds", spec.activeDeadlineSeconds, 1);
  check_least(errors, "spec.ttlSecondsAfterFinished", spec.ttlSecondsAfterFinished, 0);
  if (spec.restart) {
    check_least(errors, "spec.restart.maxFailures", spec.restart->maxFailures, 0);
    check_least(errors, "spec.restart.maxPreemptions", spec.restart->maxPreemptions, 0);
    check_duration(errors, "spec.restart.backoff", spec.restart->backoff);
  }
  if (spec.checkpoint) {
    check_least(errors, "spec.checkpoint.keepLast", spec.checkpoint->keepLast, 1);
    const auto& path = spec.checkpoint->path;
    if (path && (path->empty() || path->front() != '/')) {
      errors.push_back({Type::Invalid, "spec.checkpoint.path", *path, "must be an absolute path"});
    }
    const auto& volume = spec.checkpoint->volume;
    if (volume && volume->claimName && !is_local_name(*volume->claimName)) {
      errors.push_back({Type::Invalid, "spec.checkpoint.volume.claimName", *volume->claimName,
                        "must name a claim in the job's own namespace"});
    }
  }
  return errors;
}

bool admit(Draft& draft) {
  const std::vector<FieldError> errors = spec_errors(draft.seen);
  if (errors.empty()) {
    const api::Condition* admitted = find_condition(draft.status, api::condition::kAdmitted);
    if (admitted == nullptr || admitted->reason == "Invalid") {
      draft.set_true(api::condition::kAdmitted, "Valid", "the spec is complete and consistent");
      draft.status.phase = "Pending";
    }
    return true;
  }
  std::vector<std::string> lines;
  for (const FieldError& error : errors) lines.push_back(to_string(error));
  const std::string message = join(lines, "; ");
  const api::Condition* before = find_condition(draft.status, api::condition::kAdmitted);
  if (before == nullptr || before->message != cut_utf8(message, 2000)) {
    draft.tell(kube::Event::Type::Warning, "Invalid", "Admit", message);
  }
  draft.set_false(api::condition::kAdmitted, "Invalid", message);
  draft.status.phase = "Invalid";
  return false;
}

}  // namespace loadline::controller
