#include "placement/filters.h"

#include <algorithm>

#include "placement/money.h"
#include "placement/words.h"

namespace loadline::placement {
namespace {

const api::PlacementSpec& wish_of(const Request& request) {
  static const api::PlacementSpec kNone;
  return request.job.spec.placement ? *request.job.spec.placement : kNone;
}

api::CapacityType capacity_of(const Pool& pool) { return pool.capacity_type.value_or(api::CapacityType::OnDemand); }

bool is_spot(const Pool& pool) { return capacity_of(pool) == api::CapacityType::Spot; }

bool wanted(api::CapacityWish wish, api::CapacityType type) {
  switch (wish) {
    case api::CapacityWish::Spot: return type == api::CapacityType::Spot;
    case api::CapacityWish::OnDemand: return type == api::CapacityType::OnDemand;
    case api::CapacityWish::Reserved: return type == api::CapacityType::Reserved;
    case api::CapacityWish::Any: break;
  }
  return true;
}

bool has_length(const Request& request) { return request.workload.total_tokens > 0; }

std::string words(const std::vector<std::string>& list) { return join(list, ", "); }

std::int64_t spot_preemptions(const Request& request, const Inventory& inventory) {
  std::int64_t sum = 0;
  for (const auto& [name, history] : request.history) {
    const Pool* pool = inventory.find(name);
    if (pool != nullptr && is_spot(*pool)) sum += history.preemptions;
  }
  return sum;
}

std::string limits_on_cost(const EffectivePolicy& policy) {
  std::vector<std::string> limits;
  const auto add = [&](const std::optional<double>& limit, const char* of) {
    if (limit) limits.push_back(money_text(*limit, policy.currency) + of);
  };
  add(policy.limits.job_cost_per_hour, " per hour");
  add(policy.limits.job_total_cost, " per job");
  add(policy.limits.namespace_cost_per_hour, " per hour and namespace");
  return words(limits);
}

Refusal cannot_hold(const EffectivePolicy& policy, const std::string& why, const std::string& remedy = "") {
  return {Reason::UnknownCost,
          why + ": what " + policy.called() + " allows (" + limits_on_cost(policy) + ") cannot be held to" + remedy};
}

// Money is only compared with money of the same currency; nothing is nothing in all of them.
std::optional<Refusal> incomparable_price(const EffectivePolicy& policy, const Pool& pool) {
  const std::string remedy =
      pool.declared ? "; set spec.price of the GPUPool" : "; add a GPUPool with spec.price for its nodes";
  if (!pool.price) {
    const std::string problem = pool.price_problem.empty() ? "" : " (" + pool.price_problem + ")";
    return cannot_hold(policy, "price not known" + problem, remedy);
  }
  if (pool.price->currency == policy.currency || pool.price->per_gpu_hour <= 0) return std::nullopt;
  return cannot_hold(policy, "price is in " + pool.price->currency, remedy + " in " + policy.currency);
}

std::optional<Refusal> over_total_cost(const EffectivePolicy& policy, const Candidate& candidate) {
  if (!candidate.outlook) return cannot_hold(policy, "time unknown (" + candidate.speed_unknown + ")");
  const double limit = *policy.limits.job_total_cost;
  if (candidate.outlook->cost.value_or(0) <= limit) return std::nullopt;
  return Refusal{Reason::LimitExceeded, money_text(*candidate.outlook->cost, policy.currency) + " to finish, " +
                                            policy.called() + " allows " + money_text(limit, policy.currency) +
                                            " per job"};
}

std::optional<Refusal> over_cost(const Request& request, const EffectivePolicy& policy, const Usage& others,
                                 const Candidate& candidate) {
  const EffectivePolicy::Limits& limits = policy.limits;
  const bool by_total = limits.job_total_cost && has_length(request);
  if (!limits.job_cost_per_hour && !by_total && !limits.namespace_cost_per_hour) return std::nullopt;
  if (auto refusal = incomparable_price(policy, *candidate.pool)) return refusal;
  const double hourly = candidate.price_per_hour.value_or(0);
  if (hourly <= 0) return std::nullopt;  // is within every limit
  const auto money = [&](double amount) { return money_text(amount, policy.currency); };
  const std::string by = policy.called() + " allows ";
  if (limits.job_cost_per_hour && hourly > *limits.job_cost_per_hour) {
    return Refusal{Reason::LimitExceeded, money(hourly) + " per hour, " + by + money(*limits.job_cost_per_hour)};
  }
  if (by_total) {
    if (auto refusal = over_total_cost(policy, candidate)) return refusal;
  }
  const auto found = others.cost_per_hour.find(policy.currency);
  const double used = found == others.cost_per_hour.end() ? 0 : found->second;
  if (limits.namespace_cost_per_hour && hourly + used > *limits.namespace_cost_per_hour) {
    return Refusal{hourly > *limits.namespace_cost_per_hour ? Reason::LimitExceeded : Reason::LimitReached,
                   money(hourly) + " per hour with " + money(used) + " by other jobs of namespace " +
                       request.job.metadata.namespaceName + ", " + by + money(*limits.namespace_cost_per_hour)};
  }
  return std::nullopt;
}

// What other jobs cost that cannot be added up in the policy's currency: "12.00 EUR per hour, 2 jobs without ...".
std::string not_added_up(const Usage& others, const std::string& currency) {
  std::vector<std::string> parts;
  for (const auto& [other, amount] : others.cost_per_hour) {
    if (other != currency && amount > 0) parts.push_back(money_text(amount, other) + " per hour");
  }
  if (others.unpriced_jobs > 0) parts.push_back(counted(others.unpriced_jobs, "job") + " without a known price");
  return words(parts);
}

}  // namespace

std::optional<Refusal> excluded_by_job(const Request& request, const Pool& pool) {
  const api::PlacementSpec& wish = wish_of(request);
  if (!wish.pools.empty() && std::find(wish.pools.begin(), wish.pools.end(), pool.name) == wish.pools.end()) {
    return Refusal{Reason::PoolExcluded, "not among spec.placement.pools (" + words(wish.pools) + ")"};
  }
  const std::string product = pool.product + (pool.gpu != nullptr ? " " + pool.gpu->name : "");
  if (!wish.gpuModels.empty() && std::none_of(wish.gpuModels.begin(), wish.gpuModels.end(),
                                              [&](const auto& model) { return product_is(product, model); })) {
    return Refusal{Reason::GpuModelExcluded, "its GPU is " + (pool.product.empty() ? "unknown" : pool.product) +
                                                 ", spec.placement.gpuModels asks for " + words(wish.gpuModels)};
  }
  const api::CapacityWish capacity = wish.capacityType.value_or(api::CapacityWish::Any);
  if (!wanted(capacity, capacity_of(pool))) {
    return Refusal{Reason::CapacityTypeExcluded, "is " + std::string(api::name_of(capacity_of(pool))) +
                                                     (pool.capacity_type ? "" : " (no label says otherwise)") +
                                                     ", spec.placement.capacityType asks for " +
                                                     std::string(api::name_of(capacity))};
  }
  const bool linked =
      pool.interconnect == api::Interconnect::NvLink || pool.interconnect == api::Interconnect::NvSwitch;
  if (wish.interconnect == api::InterconnectWish::NvLink && !linked) {
    return Refusal{Reason::InterconnectExcluded,
                   (pool.interconnect == api::Interconnect::Unknown ? "its GPU link is unknown"
                                                                    : "its GPUs are linked by " + pool.link_text()) +
                       ", spec.placement.interconnect asks for nvlink"};
  }
  const bool shared =
      !pool.nodes.empty() && std::all_of(pool.nodes.begin(), pool.nodes.end(),
                                         [](const PoolNode& node) { return node.state == NodeState::Partitioned; });
  if (shared) {
    return Refusal{Reason::SharedGPUs, "whole GPUs cannot be had: " + pool.nodes.front().why};
  }
  return std::nullopt;
}

bool escalated(const Request& request, const EffectivePolicy& policy, const Inventory& inventory, TimePoint now) {
  if (!policy.spot.max_preemptions) return false;  // also when another policy, or this one before, moved the job
  if (wish_of(request).capacityType == api::CapacityWish::Spot) return false;  // there is nothing to move to
  if (request.escalated_at) {
    const std::chrono::duration<double> since = now - *request.escalated_at;
    if (policy.spot.probe_back_seconds && since.count() >= *policy.spot.probe_back_seconds) return false;
    if (policy.spot.stay_after_escalation) return true;
    // Not to stay: only the attempt right after spot runs elsewhere.
    const Pool* last = inventory.find(request.current_pool);
    return last == nullptr || is_spot(*last);
  }
  const std::int64_t seen = spot_preemptions(request, inventory);
  return seen > 0 && seen >= *policy.spot.max_preemptions;
}

std::optional<Refusal> excluded_by_policy(const Request& request, const EffectivePolicy& policy, const Pool& pool) {
  if (!policy.problem.empty()) return Refusal{Reason::PolicyDenied, policy.problem};
  if (const auto why = denied(policy, pool))
    return Refusal{Reason::PolicyDenied, "by " + policy.called() + ": " + *why};
  if (!is_spot(pool)) return std::nullopt;
  if (!policy.spot.allow) return Refusal{Reason::SpotNotAllowed, "by " + policy.called() + ": no spot"};
  if (policy.spot.require_checkpoint && !request.job.spec.checkpoint) {
    return Refusal{
        Reason::SpotNotAllowed,
        "spot can be taken away and the job keeps no checkpoint; add spec.checkpoint (" +
            (policy.name.empty() || policy.mode != api::PolicyMode::Enforce ? "required unless a policy says otherwise"
                                                                            : policy.called() + " requires it") +
            ")"};
  }
  return std::nullopt;
}

std::optional<Refusal> over_limit(const Request& request, const EffectivePolicy& policy, const Usage& others,
                                  const Candidate& candidate) {
  const EffectivePolicy::Limits& limits = policy.limits;
  const std::int64_t gpus = candidate.layout ? candidate.layout->gpus : 0;
  const std::string by = policy.called() + " allows ";
  if (limits.job_gpus && gpus > *limits.job_gpus) {
    return Refusal{Reason::LimitExceeded,
                   std::to_string(gpus) + " GPUs, " + by + std::to_string(*limits.job_gpus) + " per job"};
  }
  const std::string& space = request.job.metadata.namespaceName;
  if (limits.namespace_gpus && gpus + others.gpus > *limits.namespace_gpus) {
    return Refusal{gpus > *limits.namespace_gpus ? Reason::LimitExceeded : Reason::LimitReached,
                   std::to_string(gpus) + " GPUs with " + std::to_string(others.gpus) +
                       " in use by other jobs of namespace " + space + ", " + by +
                       std::to_string(*limits.namespace_gpus)};
  }
  if (limits.namespace_jobs && others.jobs + 1 > *limits.namespace_jobs) {
    return Refusal{*limits.namespace_jobs < 1 ? Reason::LimitExceeded : Reason::LimitReached,
                   std::to_string(others.jobs) + " jobs run in namespace " + space + ", " + by +
                       std::to_string(*limits.namespace_jobs)};
  }
  return over_cost(request, policy, others, candidate);
}

std::vector<std::string> limits_not_checked(const Request& request, const EffectivePolicy& policy,
                                            const Usage& others) {
  const EffectivePolicy::Limits& limits = policy.limits;
  std::vector<std::string> notes;
  if (limits.job_total_cost && !has_length(request)) {
    notes.push_back("what " + policy.called() + " allows (" + money_text(*limits.job_total_cost, policy.currency) +
                    " per job) is not checked: no total without spec.training.tokens, steps or epochs");
  }
  const std::string rest = not_added_up(others, policy.currency);
  if (limits.namespace_cost_per_hour && !rest.empty()) {
    notes.push_back("what " + policy.called() + " allows (" +
                    money_text(*limits.namespace_cost_per_hour, policy.currency) +
                    " per hour and namespace) does not count " + rest + " of other jobs of namespace " +
                    request.job.metadata.namespaceName);
  }
  return notes;
}

}  // namespace loadline::placement
