// The policy that applies to a job, resolved: every default filled in, in one value that is
// copied into the job's status, so that an edit never changes a running attempt.
//
// Thread-safety: plain values; pure functions.
// Errors: a job that names a policy which does not exist or does not select it gets no
// placement; `problem` says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/placement_policy.h"
#include "api/training_job.h"
#include "base/result.h"

namespace loadline::placement {

struct Pool;

struct EffectivePolicy {
  std::string name;  ///< empty: no policy selects the job; everything is allowed, by cost
  std::int64_t generation = 0;
  std::string problem;  ///< spec.placement.policy cannot be honoured, in words; empty otherwise
  api::PolicyMode mode = api::PolicyMode::Enforce;
  api::PoolRules allow, deny;

  api::PlacementObjective objective = api::PlacementObjective::Cost;
  double value_per_hour = 0;  ///< Balanced: what an hour of waiting is worth
  std::string currency = "USD";

  struct Limits {
    std::optional<std::int64_t> job_gpus;
    std::optional<double> job_cost_per_hour, job_total_cost;
    std::optional<std::int64_t> namespace_gpus, namespace_jobs;
    std::optional<double> namespace_cost_per_hour;
  } limits;

  struct Spot {
    bool allow = true;
    bool require_checkpoint = true;
    std::optional<std::int64_t> max_preemptions;  ///< then escalate; the job's own limit is another matter
    api::CapacityType escalate_to = api::CapacityType::OnDemand;
    bool stay_after_escalation = true;
    std::optional<double> probe_back_seconds;
  } spot;

  struct Sizing {
    std::int64_t margin_percent = kDefaultMarginPercent;
    api::Enforcement enforcement = api::Enforcement::Enforce;  ///< the job's wish, raised to the policy's floor
    std::optional<std::int64_t> override_mib;                  ///< the job's override where it is allowed
    bool override_refused = false;                             ///< the job asked and the policy forbids it
  } sizing;

  struct Checkpoint {
    std::optional<std::string> default_class;
    std::optional<api::RetainPolicy> retain;
    std::optional<double> longest_seconds;
  } checkpoint;

  struct AvoidNode {
    std::optional<std::int64_t> after;  ///< endings on a node before it is avoided; absent: never
    double for_seconds = 3600;
  } avoid_node;

  static constexpr std::int64_t kDefaultMarginPercent = 5;

  /// "policy team-nlp", or "no policy".
  [[nodiscard]] std::string called() const;
};

/// Of the policies that select the job's namespace and labels the one with the highest
/// precedence, equal precedence by name; spec.placement.policy picks one of them by name.
/// spec.memory can raise the margin and the enforcement above the policy's, never lower them.
/// All that it says, whatever its mode.
[[nodiscard]] EffectivePolicy stated_policy(const api::TrainingJob& job,
                                            const std::vector<api::PlacementPolicy>& policies);

/// What of it counts in its mode: under Enforce all; under Warn its defaults (objective, checkpoint) and what is laxer
/// than without a policy; under DryRun nothing. For the rest the job is judged as without a policy.
[[nodiscard]] EffectivePolicy in_effect(const EffectivePolicy& stated, const api::TrainingJob& job);

/// Both in one: the policy by which the job is placed.
[[nodiscard]] EffectivePolicy effective_policy(const api::TrainingJob& job,
                                               const std::vector<api::PlacementPolicy>& policies);

/// Why the policy keeps the job off this pool, in words ("pool not in allow list"); nothing
/// when it does not. Spot rules are not looked at here.
[[nodiscard]] std::optional<std::string> denied(const EffectivePolicy& policy, const Pool& pool);

/// Whether every word of `model` ("A100", "A100 80GB") is in the product; case does not matter.
[[nodiscard]] bool product_is(std::string_view product, std::string_view model);

/// The rules that matter, each a short sentence, for status.placement.policy.rules.
[[nodiscard]] std::vector<std::string> rules_in_words(const EffectivePolicy& policy);

/// What is wrong with a policy beyond its schema (money, durations), for admission.
[[nodiscard]] std::vector<FieldError> check_policy(const api::PlacementPolicy& policy);

}  // namespace loadline::placement
