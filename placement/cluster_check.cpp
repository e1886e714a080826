#include "placement/cluster_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "api/unsupported.h"
#include "base/text.h"
#include "placement/inventory.h"
#include "placement/policy.h"

namespace loadline::placement {
namespace {

using nlohmann::json;
using Type = FieldError::Type;

}  // namespace

std::vector<FieldError> pool_errors(const json& object) {
  const auto pool = api::parse_gpu_pool(object, api::UnknownFields::Ignore);
  if (!pool) return pool.error().fields;
  std::vector<FieldError> errors = check_pool(*pool);
  const auto at_least = [&errors](const char* field, std::optional<std::int64_t> value, std::int64_t least) {
    if (value && *value < least) {
      errors.push_back({Type::Invalid, field, std::to_string(*value), "must be at least " + std::to_string(least)});
    }
  };
  if (pool->spec.gpu) {
    at_least("spec.gpu.memoryMiBPerGPU", pool->spec.gpu->memoryMiBPerGPU, 1);
    at_least("spec.gpu.perNode", pool->spec.gpu->perNode, 1);
  }
  if (pool->spec.scaling) {
    at_least("spec.scaling.minNodes", pool->spec.scaling->minNodes, 0);
    at_least("spec.scaling.maxNodes", pool->spec.scaling->maxNodes, 0);
    at_least("spec.scaling.bootSeconds", pool->spec.scaling->bootSeconds, 0);
  }
  return errors;
}

std::vector<FieldError> policy_errors(const json& object) {
  const auto policy = api::parse_placement_policy(object, api::UnknownFields::Ignore);
  if (!policy) return policy.error().fields;
  std::vector<FieldError> errors = check_policy(*policy);
  if (!policy->spec.allow || !policy->spec.deny) return errors;
  const auto contradiction = [&errors](const char* field, const auto& allowed, const auto& denied) {
    const bool all = !allowed.empty() && std::all_of(allowed.begin(), allowed.end(), [&](const auto& entry) {
      return std::find(denied.begin(), denied.end(), entry) != denied.end();
    });
    if (!all) return;
    errors.push_back({Type::Invalid, std::string("spec.deny.") + field, "",
                      std::string("denies everything that spec.allow.") + field +
                          " allows, so no job could be placed; take one of the two out"});
  };
  contradiction("pools", policy->spec.allow->pools, policy->spec.deny->pools);
  contradiction("gpuModels", policy->spec.allow->gpuModels, policy->spec.deny->gpuModels);
  contradiction("capacityTypes", policy->spec.allow->capacityTypes, policy->spec.deny->capacityTypes);
  return errors;
}

std::vector<std::string> unused_fields(std::string_view kind, const json& object) {
  std::vector<std::string> names;
  for (const FieldError& field : api::unsupported_fields(kind, object)) names.push_back(field.field);
  if (names.empty()) return {};
  return {"kept, but not used yet: " + join(names, ", ")};
}

}  // namespace loadline::placement
