#include "webhook/job_rules.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "kube/json_read.h"
#include "webhook/defaults.h"

namespace loadline::webhook {
namespace {

using nlohmann::json;
using Type = FieldError::Type;

/// Room for "-aNNNN-NNNN" in a pod's name of 63, which is also its host name.
constexpr std::size_t kLongestName = 48;

/// Fields of spec that hold still while the job may run. suspend, activeDeadlineSeconds and ttlSecondsAfterFinished
/// are left out on purpose.
constexpr std::array<std::string_view, 13> kFixedFields{"model",    "training",   "parallelism", "gpus",    "placement",
                                                        "memory",   "checkpoint", "progress",    "restart", "launcher",
                                                        "template", "queueName",  "managedBy"};
constexpr std::array<std::string_view, 7> kPlannedFields{"model",     "training", "parallelism", "gpus",
                                                         "placement", "memory",   "checkpoint"};

const json& field_of(const json& spec, std::string_view field) {
  static const json kAbsent;
  const json* value = kube::json_at(spec, {field});
  return value != nullptr ? *value : kAbsent;
}

}  // namespace

std::vector<FieldError> name_errors(const json& object) {
  const std::string_view name = kube::string_at(object, {"metadata", "name"}).value_or("");
  if (name.size() <= kLongestName) return {};
  return {{Type::TooLarge, "metadata.name", std::string(name),
           "must be at most " + std::to_string(kLongestName) +
               " characters: pods of the gang carry it in their host names"}};
}

std::vector<FieldError> immutability_errors(const json& old_spec, const json& new_spec) {
  if (kube::bool_at(old_spec, {"suspend"}).value_or(false)) return {};
  const json before = with_defaults(old_spec);
  const json after = with_defaults(new_spec);
  std::vector<FieldError> errors;
  for (const std::string_view field : kFixedFields) {
    if (field_of(before, field) == field_of(after, field)) continue;
    errors.push_back({Type::Forbidden, "spec." + std::string(field), "",
                      "cannot change while the job may run; set spec.suspend to true first, then change it"});
  }
  return errors;
}

bool plan_changes(const json& old_spec, const json& new_spec) {
  return std::any_of(kPlannedFields.begin(), kPlannedFields.end(),
                     [&](std::string_view field) { return field_of(old_spec, field) != field_of(new_spec, field); });
}

}  // namespace loadline::webhook
