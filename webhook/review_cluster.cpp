// The verdicts on what administrators write: GPUPool and PlacementPolicy. Wrong figures are refused; what may be right
// soon (a node that comes later, a pool that is made next) is only said.
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "estimator/gpu.h"
#include "placement/cluster_check.h"
#include "placement/inventory.h"
#include "webhook/kinds.h"

namespace loadline::webhook {
namespace {

using nlohmann::json;

/// A card reports a little less than its name says; beyond this the figure belongs to another card.
constexpr double kMemoryTolerance = 0.1;

void note_memory(const api::GpuSpec& gpu, std::vector<std::string>& warnings) {
  const estimator::Gpu* known = gpu.product ? estimator::find_gpu(*gpu.product) : nullptr;
  if (gpu.product && known == nullptr) {
    warnings.push_back("spec.gpu.product " + *gpu.product +
                       " is not in the GPU table: speed is unknown, so it ranks after pools that are");
  }
  if (known == nullptr || known->memory_mib <= 0 || !gpu.memoryMiBPerGPU) return;
  const double ratio = static_cast<double>(*gpu.memoryMiBPerGPU) / static_cast<double>(known->memory_mib);
  if (ratio < 1 - kMemoryTolerance || ratio > 1 + kMemoryTolerance) {
    warnings.push_back("spec.gpu.memoryMiBPerGPU " + std::to_string(*gpu.memoryMiBPerGPU) + " is far from the " +
                       std::to_string(known->memory_mib) + " MiB of " + known->name + ": is it the right card?");
  }
}

bool selects(const std::map<std::string, std::string>& selector, const placement::NodeFacts& node) {
  return std::all_of(selector.begin(), selector.end(), [&](const auto& label) {
    const auto found = node.labels.find(label.first);
    return found != node.labels.end() && found->second == label.second;
  });
}

void note_nodes(const api::GPUPoolSpec& spec, const Snapshot& snapshot, std::vector<std::string>& warnings) {
  if (!snapshot.complete || spec.nodeSelector.empty()) return;
  const auto matching = std::count_if(snapshot.nodes.begin(), snapshot.nodes.end(),
                                      [&](const auto& node) { return selects(spec.nodeSelector, node); });
  if (matching > 0) return;
  const bool scales = spec.scaling && spec.scaling->maxNodes.value_or(0) > 0;
  warnings.push_back(std::string("spec.nodeSelector matches no node now") +
                     (scales ? "; the pool counts as scaled to zero" : "; jobs can use the pool once one joins"));
}

void note_unknown_pools(const std::optional<api::PoolRules>& rules, const std::string& field, const Snapshot& snapshot,
                        std::vector<std::string>& warnings) {
  if (!rules || !snapshot.complete) return;
  for (const std::string& name : rules->pools) {
    if (snapshot.inventory.find(name) == nullptr) {
      warnings.push_back(field + ".pools: no pool is named " + name + " now");
    }
  }
}

void append(std::vector<std::string>& warnings, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(warnings));
}

Verdict verdict_of(std::vector<FieldError> errors) {
  Verdict verdict;
  if (!errors.empty()) verdict.kind = Verdict::Kind::Invalid;
  verdict.causes = std::move(errors);
  return verdict;
}

}  // namespace

Verdict validate_pool(const Request& request, const Snapshot& snapshot) {
  Verdict verdict = verdict_of(errors_brought_in(*request.object, request.old_object, placement::pool_errors));
  const auto pool = api::parse_gpu_pool(*request.object, api::UnknownFields::Ignore);
  if (!pool || request.deleting()) return verdict;
  if (pool->spec.gpu) note_memory(*pool->spec.gpu, verdict.warnings);
  note_nodes(pool->spec, snapshot, verdict.warnings);
  append(verdict.warnings, placement::unused_fields(api::GPUPool::kKind, *request.object));
  return verdict;
}

Verdict validate_policy(const Request& request, const Snapshot& snapshot) {
  Verdict verdict = verdict_of(errors_brought_in(*request.object, request.old_object, placement::policy_errors));
  const auto policy = api::parse_placement_policy(*request.object, api::UnknownFields::Ignore);
  if (!policy || request.deleting()) return verdict;
  note_unknown_pools(policy->spec.allow, "spec.allow", snapshot, verdict.warnings);
  note_unknown_pools(policy->spec.deny, "spec.deny", snapshot, verdict.warnings);
  append(verdict.warnings, placement::unused_fields(api::PlacementPolicy::kKind, *request.object));
  return verdict;
}

}  // namespace loadline::webhook
