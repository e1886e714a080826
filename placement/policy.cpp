#include "placement/policy.h"

#include <algorithm>

#include "base/text.h"
#include "estimator/gpu.h"
#include "placement/inventory.h"
#include "placement/money.h"

namespace loadline::placement {
namespace {

using Type = FieldError::Type;

bool selects(const api::PlacementPolicy& policy, const api::TrainingJob& job) {
  if (!policy.spec.selector) return true;
  const api::PolicySelector& selector = *policy.spec.selector;
  const auto& namespaces = selector.namespaces;
  const bool here = namespaces.empty() ||
                    std::find(namespaces.begin(), namespaces.end(), job.metadata.namespaceName) != namespaces.end();
  return here && std::all_of(selector.matchLabels.begin(), selector.matchLabels.end(), [&](const auto& pair) {
           const auto found = job.metadata.labels.find(pair.first);
           return found != job.metadata.labels.end() && found->second == pair.second;
         });
}

const api::PlacementPolicy* strongest(const api::TrainingJob& job, const std::vector<api::PlacementPolicy>& policies) {
  const api::PlacementPolicy* best = nullptr;
  for (const api::PlacementPolicy& policy : policies) {
    if (!selects(policy, job)) continue;
    const auto rank = policy.spec.precedence.value_or(0);
    const auto best_rank = best != nullptr ? best->spec.precedence.value_or(0) : 0;
    if (best == nullptr || rank > best_rank || (rank == best_rank && policy.metadata.name < best->metadata.name)) {
      best = &policy;
    }
  }
  return best;
}

// The policy that the job names: it must exist and select the job, or a user could pick a laxer one.
const api::PlacementPolicy* named(const std::string& name, const api::TrainingJob& job,
                                  const std::vector<api::PlacementPolicy>& policies, std::string& problem) {
  for (const api::PlacementPolicy& policy : policies) {
    if (policy.metadata.name != name) continue;
    if (selects(policy, job)) return &policy;
    problem = "policy " + name + " does not select this job (its namespaces or labels differ)";
    return nullptr;
  }
  problem = "policy " + name + " does not exist";
  return nullptr;
}

std::optional<double> money(const std::optional<std::string>& text) { return text ? parse_money(*text) : std::nullopt; }

std::optional<double> seconds(const std::optional<std::string>& text) {
  return text ? parse_duration(*text) : std::nullopt;
}

void take_limits(const api::LimitsSpec& spec, EffectivePolicy::Limits& limits) {
  if (spec.perJob) {
    limits.job_gpus = spec.perJob->gpus;
    limits.job_cost_per_hour = money(spec.perJob->costPerHour);
    limits.job_total_cost = money(spec.perJob->totalCost);
  }
  if (spec.perNamespace) {
    limits.namespace_gpus = spec.perNamespace->gpus;
    limits.namespace_jobs = spec.perNamespace->jobs;
    limits.namespace_cost_per_hour = money(spec.perNamespace->costPerHour);
  }
}

void take_spot(const api::SpotSpec& spec, EffectivePolicy::Spot& spot) {
  spot.allow = spec.allow.value_or(spot.allow);
  spot.require_checkpoint = spec.requireCheckpoint.value_or(spot.require_checkpoint);
  spot.max_preemptions = spec.maxPreemptions;
  spot.escalate_to = spec.escalateTo.value_or(spot.escalate_to);
  spot.stay_after_escalation = spec.stayAfterEscalation.value_or(spot.stay_after_escalation);
  spot.probe_back_seconds = seconds(spec.probeBack);
}

// The job may be stricter than the policy, never laxer.
void take_sizing(const api::TrainingJob& job, const api::PolicySizing& policy, EffectivePolicy::Sizing& sizing) {
  static const api::MemorySpec kNoWish;
  const api::MemorySpec& wish = job.spec.memory ? *job.spec.memory : kNoWish;
  if (policy.marginPercent) {
    sizing.margin_percent = std::max(*policy.marginPercent, wish.marginPercent.value_or(0));
  } else {
    sizing.margin_percent = wish.marginPercent.value_or(EffectivePolicy::kDefaultMarginPercent);
  }
  sizing.margin_percent = std::clamp<std::int64_t>(sizing.margin_percent, 0, 1000);
  sizing.enforcement = std::max(policy.enforcement.value_or(api::Enforcement::Off),
                                wish.enforcement.value_or(api::Enforcement::Enforce));
  if (wish.overrideMiBPerGPU) {
    const bool allowed = policy.allowOverride.value_or(true);
    sizing.override_refused = !allowed;
    if (allowed) sizing.override_mib = wish.overrideMiBPerGPU;
  }
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool any_model(const std::vector<std::string>& models, const std::string& product) {
  return std::any_of(models.begin(), models.end(), [&](const auto& model) { return product_is(product, model); });
}

api::CapacityType capacity_or_default(const Pool& pool) {
  return pool.capacity_type.value_or(api::CapacityType::OnDemand);
}

std::string list_text(const api::PoolRules& rules) {
  std::vector<std::string> words = rules.pools;
  words.insert(words.end(), rules.gpuModels.begin(), rules.gpuModels.end());
  for (const api::CapacityType type : rules.capacityTypes) words.emplace_back(api::name_of(type));
  return join(words, ", ");
}

EffectivePolicy resolved(const api::TrainingJob& job, const api::PlacementPolicySpec& spec) {
  EffectivePolicy effective;
  effective.mode = spec.mode.value_or(api::PolicyMode::Enforce);
  if (spec.allow) effective.allow = *spec.allow;
  if (spec.deny) effective.deny = *spec.deny;
  if (spec.objective) {
    effective.objective = spec.objective->type.value_or(api::PlacementObjective::Cost);
    effective.value_per_hour = money(spec.objective->valuePerHour).value_or(0);
    effective.currency = spec.objective->currency.value_or("USD");
  }
  if (spec.limits) take_limits(*spec.limits, effective.limits);
  if (spec.spot) take_spot(*spec.spot, effective.spot);
  take_sizing(job, spec.sizing.value_or(api::PolicySizing{}), effective.sizing);
  if (spec.checkpoint) {
    effective.checkpoint.default_class = spec.checkpoint->defaultClass;
    effective.checkpoint.retain = spec.checkpoint->retain;
    effective.checkpoint.longest_seconds = seconds(spec.checkpoint->maxInterval);
  }
  if (spec.avoidNode) {
    effective.avoid_node.after = spec.avoidNode->after;
    effective.avoid_node.for_seconds = seconds(spec.avoidNode->forDuration).value_or(effective.avoid_node.for_seconds);
  }
  return effective;
}

}  // namespace

std::string EffectivePolicy::called() const { return name.empty() ? "no policy" : "policy " + name; }

EffectivePolicy stated_policy(const api::TrainingJob& job, const std::vector<api::PlacementPolicy>& policies) {
  std::string problem;
  const bool picked = job.spec.placement && job.spec.placement->policy;
  const api::PlacementPolicy* policy =
      picked ? named(*job.spec.placement->policy, job, policies, problem) : strongest(job, policies);
  EffectivePolicy stated = resolved(job, policy != nullptr ? policy->spec : api::PlacementPolicySpec{});
  stated.problem = problem;
  if (policy != nullptr) {
    stated.name = policy->metadata.name;
    stated.generation = policy->metadata.generation.value_or(0);
  }
  return stated;
}

EffectivePolicy in_effect(const EffectivePolicy& stated, const api::TrainingJob& job) {
  if (stated.mode == api::PolicyMode::Enforce) return stated;
  EffectivePolicy policy = resolved(job, {});
  policy.name = stated.name;
  policy.generation = stated.generation;
  policy.mode = stated.mode;
  if (stated.mode == api::PolicyMode::DryRun) return policy;
  policy.objective = stated.objective;
  policy.value_per_hour = stated.value_per_hour;
  policy.currency = stated.currency;
  policy.checkpoint = stated.checkpoint;
  // Where the policy is laxer than the defaults, Warn must not refuse what Enforce would let pass.
  policy.spot.require_checkpoint = stated.spot.require_checkpoint;
  policy.sizing.margin_percent = std::min(policy.sizing.margin_percent, stated.sizing.margin_percent);
  return policy;
}

EffectivePolicy effective_policy(const api::TrainingJob& job, const std::vector<api::PlacementPolicy>& policies) {
  return in_effect(stated_policy(job, policies), job);
}

bool product_is(std::string_view product, std::string_view model) {
  const auto words = estimator::product_words(product);
  const auto wanted = estimator::product_words(model);
  return !wanted.empty() && std::all_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

std::optional<std::string> denied(const EffectivePolicy& policy, const Pool& pool) {
  const auto& [allow, deny] = std::tie(policy.allow, policy.deny);
  const std::string product = pool.product + (pool.gpu != nullptr ? " " + pool.gpu->name : "");
  const api::CapacityType capacity = capacity_or_default(pool);
  const std::string capacity_word(api::name_of(capacity));
  const auto in = [&](const std::vector<api::CapacityType>& list) {
    return std::find(list.begin(), list.end(), capacity) != list.end();
  };
  if (contains(deny.pools, pool.name)) return "pool is in the deny list";
  if (any_model(deny.gpuModels, product)) return "GPU " + pool.product + " is in the deny list";
  if (in(deny.capacityTypes)) return capacity_word + " capacity is in the deny list";
  if (!allow.pools.empty() && !contains(allow.pools, pool.name)) return "pool not in allow list";
  if (!allow.gpuModels.empty() && !any_model(allow.gpuModels, product)) {
    return "GPU " + (pool.product.empty() ? std::string("unknown") : pool.product) + " not in allow list";
  }
  if (!allow.capacityTypes.empty() && !in(allow.capacityTypes)) return capacity_word + " capacity not in allow list";
  return std::nullopt;
}

std::vector<std::string> rules_in_words(const EffectivePolicy& policy) {
  std::vector<std::string> rules;
  std::string objective = "objective " + std::string(api::name_of(policy.objective));
  if (policy.objective == api::PlacementObjective::Balanced) {
    objective += ": an hour is worth " + money_text(policy.value_per_hour, policy.currency);
  }
  rules.push_back(objective);
  if (policy.mode != api::PolicyMode::Enforce) rules.push_back("mode " + std::string(api::name_of(policy.mode)));
  if (const std::string allow = list_text(policy.allow); !allow.empty()) rules.push_back("allowed: " + allow);
  if (const std::string deny = list_text(policy.deny); !deny.empty()) rules.push_back("denied: " + deny);
  const EffectivePolicy::Limits& limits = policy.limits;
  if (limits.job_gpus) rules.push_back("at most " + std::to_string(*limits.job_gpus) + " GPUs per job");
  if (limits.job_cost_per_hour) {
    rules.push_back("at most " + money_text(*limits.job_cost_per_hour, policy.currency) + " per hour and job");
  }
  if (limits.job_total_cost)
    rules.push_back("at most " + money_text(*limits.job_total_cost, policy.currency) + " per job");
  if (limits.namespace_gpus)
    rules.push_back("at most " + std::to_string(*limits.namespace_gpus) + " GPUs per namespace");
  if (limits.namespace_jobs)
    rules.push_back("at most " + std::to_string(*limits.namespace_jobs) + " jobs per namespace");
  if (limits.namespace_cost_per_hour) {
    rules.push_back("at most " + money_text(*limits.namespace_cost_per_hour, policy.currency) +
                    " per hour and namespace");
  }
  if (!policy.spot.allow) {
    rules.emplace_back("no spot");
  } else if (policy.spot.max_preemptions) {
    rules.push_back("spot up to " + std::to_string(*policy.spot.max_preemptions) + " interruptions, then " +
                    std::string(api::name_of(policy.spot.escalate_to)));
  }
  rules.push_back("memory margin " + std::to_string(policy.sizing.margin_percent) + " %, " +
                  std::string(api::name_of(policy.sizing.enforcement)));
  return rules;
}

std::vector<FieldError> check_policy(const api::PlacementPolicy& policy) {
  std::vector<FieldError> errors;
  const auto check_money = [&](const std::string& field, const std::optional<std::string>& typed) {
    if (typed && !parse_money(*typed)) {
      errors.push_back({Type::Invalid, field, *typed, "must be a decimal such as \"12.50\""});
    }
  };
  const auto check_duration = [&](const std::string& field, const std::optional<std::string>& typed) {
    if (typed && !parse_duration(*typed)) {
      errors.push_back({Type::Invalid, field, *typed, "must be a duration such as 30m or 6h"});
    }
  };
  const api::PlacementPolicySpec& spec = policy.spec;
  if (spec.objective) {
    check_money("spec.objective.valuePerHour", spec.objective->valuePerHour);
    if (spec.objective->type == api::PlacementObjective::Balanced && !spec.objective->valuePerHour) {
      errors.push_back({Type::Required, "spec.objective.valuePerHour", "", "Balanced needs what an hour is worth"});
    }
  }
  if (spec.limits && spec.limits->perJob) {
    check_money("spec.limits.perJob.costPerHour", spec.limits->perJob->costPerHour);
    check_money("spec.limits.perJob.totalCost", spec.limits->perJob->totalCost);
  }
  if (spec.limits && spec.limits->perNamespace) {
    check_money("spec.limits.perNamespace.costPerHour", spec.limits->perNamespace->costPerHour);
    if (spec.limits->perNamespace->budget) {
      errors.push_back({Type::NotSupported, "spec.limits.perNamespace.budget", "",
                        "not supported yet: a budget over a window; use costPerHour"});
    }
  }
  if (spec.spot) {
    check_duration("spec.spot.probeBack", spec.spot->probeBack);
    if (spec.spot->escalateTo == api::CapacityType::Spot) {
      errors.push_back({Type::Invalid, "spec.spot.escalateTo", "spot", "must be on-demand or reserved"});
    }
  }
  if (spec.checkpoint) check_duration("spec.checkpoint.maxInterval", spec.checkpoint->maxInterval);
  if (spec.avoidNode) check_duration("spec.avoidNode.for", spec.avoidNode->forDuration);
  return errors;
}

}  // namespace loadline::placement
