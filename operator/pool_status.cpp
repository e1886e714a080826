#include "operator/pool_status.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "api/names.h"
#include "operator/resources.h"
#include "placement/policy.h"

namespace loadline::controller {
namespace {

using nlohmann::json;

constexpr const char* kAccepted = "Accepted";
constexpr std::size_t kMessageBytes = 2000;

/// One condition says whether the object is used as it is written.
void set_accepted(std::vector<api::Condition>& conditions, const std::vector<FieldError>& errors,
                  const std::string& when_fine, std::int64_t generation, TimePoint now) {
  const auto value = errors.empty() ? api::ConditionStatus::True : api::ConditionStatus::False;
  auto it =
      std::find_if(conditions.begin(), conditions.end(), [](const api::Condition& c) { return c.type == kAccepted; });
  if (it == conditions.end()) it = conditions.insert(it, api::Condition{});
  if (it->type.empty() || it->status != value) it->lastTransitionTime = rfc3339(now);
  it->type = kAccepted;
  it->status = value;
  it->reason = errors.empty() ? "Valid" : "Invalid";
  it->message = cut_utf8(errors.empty() ? when_fine : to_string(errors), kMessageBytes);
  it->observedGeneration = generation;
}

WriteStatus status_write(const kube::Resource& resource, const kube::Object& stored, json status) {
  return {
      resource,
      {{"apiVersion", api::kApiVersion},
       {"kind", resource.kind},
       {"metadata", {{"name", stored.name()}, {"uid", stored.uid()}, {"resourceVersion", stored.resource_version()}}},
       {"status", std::move(status)}}};
}

Decision write_if_changed(const kube::Resource& resource, const kube::Object& stored, const json& before, json after) {
  Decision decision;
  if (before != after) decision.actions.emplace_back(status_write(resource, stored, std::move(after)));
  return decision;
}

}  // namespace

std::optional<double> learned_rate(const std::vector<api::TrainingJob>& jobs, const std::string& pool,
                                   std::optional<double> prior, TimePoint now) {
  double node_hours = 0, losses = 0;
  for (const api::TrainingJob& job : jobs) {
    for (const api::AttemptStatus& a : job.status.attempts) {
      const auto start = parse_rfc3339(a.startTime.value_or(""));
      if (a.pool != pool || !start) continue;
      const TimePoint end = parse_rfc3339(a.endTime.value_or("")).value_or(now);
      // Running attempts count by whole hours, so that the status does not change with every second.
      double hours = std::max(0.0, std::chrono::duration<double, std::ratio<3600>>(end - *start).count());
      if (!a.endTime) hours = std::floor(hours);
      node_hours += hours * static_cast<double>(a.nodes.value_or(1));
      if (a.cause == api::AttemptCause::Preempted) losses += 1;
    }
  }
  if (node_hours <= 0 || (!prior && node_hours < kPriorNodeHours)) return std::nullopt;
  if (!prior) return (losses + 1) / (node_hours + kPriorNodeHours);
  return (losses + *prior * kPriorNodeHours) / (node_hours + kPriorNodeHours);
}

Decision decide_pool(const kube::Object& stored, const ClusterFacts& cluster, const std::vector<api::TrainingJob>& jobs,
                     TimePoint now) {
  const auto parsed = api::parse_gpu_pool(stored.json(), api::UnknownFields::Ignore);
  api::GPUPoolStatus status;
  std::vector<FieldError> errors;
  json before =
      stored.json().is_object() && stored.json().contains("status") ? stored.json()["status"] : json::object();
  std::string fine = "no node matches its nodeSelector yet";
  if (!parsed) {
    errors = parsed.error().fields;
  } else {
    before = api::to_json(parsed->status);
    errors = placement::check_pool(*parsed);
    if (const placement::Pool* pool = cluster.inventory.find(stored.name())) {
      status = placement::pool_status(*pool);
      if (!pool->nodes.empty()) fine = std::to_string(pool->nodes.size()) + " nodes belong to it";
    }
    status.interruptionsPerNodeHour = learned_rate(jobs, stored.name(), parsed->spec.interruptionsPerNodeHour, now);
    status.conditions = parsed->status.conditions;
  }
  status.observedGeneration = stored.generation();
  set_accepted(status.conditions, errors, fine, stored.generation(), now);
  return write_if_changed(resources::kGPUPools, stored, before, api::to_json(status));
}

Decision decide_policy(const kube::Object& stored, TimePoint now) {
  const auto parsed = api::parse_placement_policy(stored.json(), api::UnknownFields::Ignore);
  std::vector<FieldError> errors;
  api::PlacementPolicy policy;
  if (parsed) {
    policy = *parsed;
    errors = placement::check_policy(policy);
  } else {
    errors = parsed.error().fields;
  }
  api::PlacementPolicy after = policy;
  after.status.observedGeneration = stored.generation();
  set_accepted(after.status.conditions, errors, "applies to the jobs it selects", stored.generation(), now);
  const auto status_of = [](const api::PlacementPolicy& p) {
    const json whole = api::to_json(p);
    return whole.contains("status") ? whole["status"] : json::object();
  };
  return write_if_changed(resources::kPlacementPolicies, stored, status_of(policy), status_of(after));
}

}  // namespace loadline::controller
