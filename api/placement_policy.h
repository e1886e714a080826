// PlacementPolicy (cluster-scoped, short name ppol): what is allowed, for whom, and what
// to optimise. Of the policies that select a job the one with the highest precedence
// applies; equal precedence is broken by name. No policy: everything is allowed, by cost.
// See api/meta.h for how fields are listed and what absence means.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/enums.h"
#include "api/meta.h"

namespace loadline::api {

/// Which jobs; both parts must match, an empty part matches all.
struct PolicySelector {
  std::vector<std::string> namespaces;
  std::map<std::string, std::string> matchLabels;  ///< of the TrainingJob

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("namespaces", self.namespaces);
    visit("matchLabels", self.matchLabels);
  }
  bool operator==(const PolicySelector&) const = default;
};

/// Pools by name, GPU model words and capacity types. In `allow` an empty list allows all;
/// in `deny` an empty list denies none. Deny wins.
struct PoolRules {
  std::vector<std::string> pools, gpuModels;
  std::vector<CapacityType> capacityTypes;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("pools", self.pools);
    visit("gpuModels", self.gpuModels);
    visit("capacityTypes", self.capacityTypes);
  }
  bool operator==(const PoolRules&) const = default;
};

struct ObjectiveSpec {
  std::optional<PlacementObjective> type;   ///< default Cost
  std::optional<std::string> valuePerHour;  ///< Balanced: what an hour of waiting is worth, decimal string
  std::optional<std::string> currency;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("type", self.type);
    visit("valuePerHour", self.valuePerHour);
    visit("currency", self.currency);
  }
  bool operator==(const ObjectiveSpec&) const = default;
};

struct JobLimits {
  std::optional<std::int64_t> gpus;
  std::optional<std::string> costPerHour, totalCost;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("gpus", self.gpus);
    visit("costPerHour", self.costPerHour);
    visit("totalCost", self.totalCost);
  }
  bool operator==(const JobLimits&) const = default;
};

struct BudgetSpec {
  static constexpr std::array<std::string_view, 2> kRequired{"amount", "window"};

  std::optional<std::string> amount;
  std::optional<std::string> window;  ///< duration

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("amount", self.amount);
    visit("window", self.window);
  }
  bool operator==(const BudgetSpec&) const = default;
};

struct NamespaceLimits {
  std::optional<std::int64_t> gpus, jobs;
  std::optional<std::string> costPerHour;
  std::optional<BudgetSpec> budget;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("gpus", self.gpus);
    visit("jobs", self.jobs);
    visit("costPerHour", self.costPerHour);
    visit("budget", self.budget);
  }
  bool operator==(const NamespaceLimits&) const = default;
};

struct LimitsSpec {
  std::optional<JobLimits> perJob;
  std::optional<NamespaceLimits> perNamespace;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("perJob", self.perJob);
    visit("perNamespace", self.perNamespace);
  }
  bool operator==(const LimitsSpec&) const = default;
};

struct SpotSpec {
  std::optional<bool> allow;                   ///< default true
  std::optional<bool> requireCheckpoint;       ///< spot only for jobs with a checkpoint volume; default true
  std::optional<std::int64_t> maxPreemptions;  ///< then escalate
  std::optional<CapacityType> escalateTo;      ///< default on-demand
  std::optional<bool> stayAfterEscalation;     ///< default true
  std::optional<std::string> probeBack;        ///< duration after which spot is tried again

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("allow", self.allow);
    visit("requireCheckpoint", self.requireCheckpoint);
    visit("maxPreemptions", self.maxPreemptions);
    visit("escalateTo", self.escalateTo);
    visit("stayAfterEscalation", self.stayAfterEscalation);
    visit("probeBack", self.probeBack);
  }
  bool operator==(const SpotSpec&) const = default;
};

struct PolicySizing {
  std::optional<std::int64_t> marginPercent;
  std::optional<Enforcement> enforcement;  ///< the floor
  std::optional<bool> allowOverride;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("marginPercent", self.marginPercent);
    visit("enforcement", self.enforcement);
    visit("allowOverride", self.allowOverride);
  }
  bool operator==(const PolicySizing&) const = default;
};

struct PolicyCheckpoint {
  std::optional<std::string> defaultClass;
  std::optional<RetainPolicy> retain;
  std::optional<std::string> maxInterval;  ///< duration

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("defaultClass", self.defaultClass);
    visit("retain", self.retain);
    visit("maxInterval", self.maxInterval);
  }
  bool operator==(const PolicyCheckpoint&) const = default;
};

/// A node on which attempts ended `after` times for infrastructure is avoided `forDuration`.
struct AvoidNodeSpec {
  static constexpr std::array<std::string_view, 2> kRequired{"after", "for"};

  std::optional<std::int64_t> after;
  std::optional<std::string> forDuration;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("after", self.after);
    visit("for", self.forDuration);
  }
  bool operator==(const AvoidNodeSpec&) const = default;
};

struct PlacementPolicySpec {
  std::optional<PolicySelector> selector;
  std::optional<std::int64_t> precedence;  ///< default 0
  std::optional<PoolRules> allow, deny;
  std::optional<ObjectiveSpec> objective;
  std::optional<LimitsSpec> limits;
  std::optional<SpotSpec> spot;
  std::optional<PolicySizing> sizing;
  std::optional<PolicyCheckpoint> checkpoint;
  std::optional<AvoidNodeSpec> avoidNode;
  std::optional<PolicyMode> mode;  ///< default Enforce

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("selector", self.selector);
    visit("precedence", self.precedence);
    visit("allow", self.allow);
    visit("deny", self.deny);
    visit("objective", self.objective);
    visit("limits", self.limits);
    visit("spot", self.spot);
    visit("sizing", self.sizing);
    visit("checkpoint", self.checkpoint);
    visit("avoidNode", self.avoidNode);
    visit("mode", self.mode);
  }
  bool operator==(const PlacementPolicySpec&) const = default;
};

struct PlacementPolicyStatus {
  std::optional<std::int64_t> observedGeneration;
  std::vector<Condition> conditions;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("observedGeneration", self.observedGeneration);
    visit("conditions", self.conditions);
  }
  bool operator==(const PlacementPolicyStatus&) const = default;
};

struct PlacementPolicy {
  static constexpr const char* kKind = "PlacementPolicy";
  static constexpr const char* kPlural = "placementpolicies";
  static constexpr std::array<std::string_view, 1> kRequired{"spec"};

  ObjectMeta metadata;
  PlacementPolicySpec spec;
  PlacementPolicyStatus status;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("metadata", self.metadata);
    visit("spec", self.spec);
    visit("status", self.status);
  }
  bool operator==(const PlacementPolicy&) const = default;
};

}  // namespace loadline::api
