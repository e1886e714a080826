#include "placement/job_check.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "api/json_member.h"
#include "api/unsupported.h"
#include "base/text.h"
#include "estimator/workload.h"
#include "placement/progress_pattern.h"

namespace loadline::placement {
namespace {

using api::member;
using nlohmann::json;
using Type = FieldError::Type;

constexpr std::int64_t kMostGpus = 65536;
constexpr double kMostParameters = 1e15;

class Rules {
 public:
  void at_least(const char* field, std::optional<std::int64_t> value, std::int64_t least) {
    if (value && *value < least) refuse(field, std::to_string(*value), "must be at least " + std::to_string(least));
  }
  void at_most(const char* field, std::optional<std::int64_t> value, std::int64_t most) {
    if (value && *value > most) {
      errors.push_back({Type::TooLarge, field, std::to_string(*value), "must be at most " + std::to_string(most)});
    }
  }
  void duration(const char* field, const std::optional<std::string>& value, bool or_auto = false) {
    if (!value || (or_auto && *value == "auto")) return;
    const auto seconds = parse_duration(*value);
    if (!seconds || *seconds < 0) {
      refuse(field, *value, std::string("must be ") + (or_auto ? "auto or " : "") + "a duration such as 30s or 1h30m");
    }
  }
  void refuse(const char* field, std::string value, std::string detail) {
    errors.push_back({Type::Invalid, field, std::move(value), std::move(detail)});
  }

  std::vector<FieldError> errors;
};

/// An object's name; no '/' and no namespace, so it cannot reach out of the job's own.
bool is_name(const std::string& text) {
  const auto fits = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), fits);
}

/// A file's name without a way out of its directory, or anything that a shell would expand.
bool is_file_name(const std::string& text) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), fits);
}

void check_gpus(Rules& rules, const api::GpusSpec& gpus) {
  rules.at_least("spec.gpus.count", gpus.count, 1);
  rules.at_least("spec.gpus.min", gpus.min, 1);
  rules.at_least("spec.gpus.max", gpus.max, 1);
  rules.at_most("spec.gpus.count", gpus.count, kMostGpus);
  rules.at_most("spec.gpus.min", gpus.min, kMostGpus);
  rules.at_most("spec.gpus.max", gpus.max, kMostGpus);
  if (gpus.count && (gpus.min || gpus.max)) {
    rules.refuse("spec.gpus.count", std::to_string(*gpus.count), "give either count, or min and max");
  }
  if (gpus.min && gpus.max && *gpus.min > *gpus.max) {
    rules.refuse("spec.gpus.min", std::to_string(*gpus.min), "must not exceed max " + std::to_string(*gpus.max));
  }
}

void check_volume(Rules& rules, const api::CheckpointVolumeSpec& volume) {
  if (volume.claimName) {
    if (!is_name(*volume.claimName)) {
      rules.refuse("spec.checkpoint.volume.claimName", *volume.claimName,
                   "must name a claim in the job's own namespace");
    }
    if (volume.storageClassName || volume.size || volume.retain || !volume.accessModes.empty()) {
      rules.refuse(
          "spec.checkpoint.volume.claimName", *volume.claimName,
          "names a claim that exists; storageClassName, accessModes, size and retain are for one that is made");
    }
  }
  if (volume.size && *volume.size != "auto") {
    const auto bytes = parse_quantity(*volume.size);
    if (!bytes || *bytes < 1) {
      rules.refuse("spec.checkpoint.volume.size", *volume.size, "must be auto or a quantity such as 400Gi");
    }
  }
}

void check_checkpoint(Rules& rules, const api::CheckpointSpec& checkpoint) {
  rules.at_least("spec.checkpoint.keepLast", checkpoint.keepLast, 1);
  rules.at_most("spec.checkpoint.keepLast", checkpoint.keepLast, 1000);
  rules.duration("spec.checkpoint.interval", checkpoint.interval, true);
  if (checkpoint.path && (checkpoint.path->empty() || checkpoint.path->front() != '/' || *checkpoint.path == "/")) {
    rules.refuse("spec.checkpoint.path", *checkpoint.path, "must be an absolute path such as /checkpoints");
  }
  if (checkpoint.completeMarker && !is_file_name(*checkpoint.completeMarker)) {
    rules.refuse("spec.checkpoint.completeMarker", *checkpoint.completeMarker,
                 "must be a file's name, of letters, digits, dots, dashes and underscores");
  }
  if (checkpoint.volume) check_volume(rules, *checkpoint.volume);
}

void check_restart(Rules& rules, const api::RestartSpec& restart) {
  rules.at_least("spec.restart.maxFailures", restart.maxFailures, 0);
  rules.at_least("spec.restart.maxPreemptions", restart.maxPreemptions, 0);
  rules.duration("spec.restart.backoff", restart.backoff);
}

void append(std::vector<FieldError>& errors, std::vector<FieldError> more) {
  errors.insert(errors.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// The job without its status, which is ours to mend and nothing to refuse a job for.
json without_status(json object) {
  if (object.is_object()) object.erase("status");
  return object;
}

}  // namespace

std::vector<FieldError> check_spec(const api::TrainingJobSpec& spec) {
  Rules rules;
  if (spec.model.parameters && !(*spec.model.parameters <= kMostParameters)) {
    rules.errors.push_back(
        {Type::TooLarge, "spec.model.parameters", scientific(*spec.model.parameters), "must be at most 1e15"});
  }
  if (spec.gpus) check_gpus(rules, *spec.gpus);
  if (spec.checkpoint) check_checkpoint(rules, *spec.checkpoint);
  if (spec.restart) check_restart(rules, *spec.restart);
  if (spec.memory) {
    rules.at_least("spec.memory.marginPercent", spec.memory->marginPercent, 0);
    rules.at_least("spec.memory.overrideMiBPerGPU", spec.memory->overrideMiBPerGPU, 1);
  }
  rules.at_least("spec.activeDeadlineSeconds", spec.activeDeadlineSeconds, 1);
  rules.at_least("spec.ttlSecondsAfterFinished", spec.ttlSecondsAfterFinished, 0);
  if (spec.progress && spec.progress->pattern) {
    const auto pattern = progress_pattern(*spec.progress->pattern);
    if (!pattern) rules.refuse("spec.progress.pattern", *spec.progress->pattern, pattern.error().message);
  }
  return std::move(rules.errors);
}

std::vector<FieldError> check_job(const json& object) {
  std::vector<FieldError> errors;
  if (const auto job = api::parse_training_job(without_status(object), api::UnknownFields::Ignore); !job) {
    errors = job.error().fields;
    if (errors.empty()) errors.push_back({Type::Invalid, "", "", job.error().message});
  } else {
    errors = check_spec(job->spec);
    if (const auto workload = estimator::workload_from(job->spec); !workload) append(errors, workload.error().fields);
  }
  // These read the raw object, so a mistyped field elsewhere does not hide what is wrong here.
  const json& pod_template = member(member(object, "spec"), "template");
  if (pod_template.is_object()) append(errors, check_template(pod_template));
  append(errors, api::unsupported_fields(api::TrainingJob::kKind, object));
  return errors;
}

}  // namespace loadline::placement
