// TrainingJob.status: what Loadline decided and saw. Bounded: below 32 KiB, lists capped,
// messages below 2 KiB. `explanation` lists are short strings in reading order, for people;
// the numbers beside them are for machines. Names are chosen so that kubectl describe,
// which sorts keys, reads well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/enums.h"
#include "api/meta.h"

namespace loadline::api {

/// One line of the sum, in MiB on one GPU at the peak.
struct SizingTerm {
  std::string name;
  std::int64_t mib = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("mib", self.mib);
  }
  bool operator==(const SizingTerm&) const = default;
};

struct SizingStatus {
  std::optional<std::string> summary;             ///< one line: the answer
  std::vector<std::string> explanation;           ///< the sum, line by line
  std::vector<SizingTerm> perGPU;                 ///< terms of the peak phase
  std::optional<std::int64_t> requiredMiBPerGPU;  ///< what the gate compares, margin included
  std::optional<std::int64_t> hostMemoryMiB;      ///< per node
  std::optional<ConfidenceLevel> confidence;
  std::vector<std::string> assumptions;
  std::optional<std::string> formulaVersion;
  std::optional<std::int64_t> measuredPeakMiB;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("summary", self.summary);
    visit("explanation", self.explanation);
    visit("perGPU", self.perGPU);
    visit("requiredMiBPerGPU", self.requiredMiBPerGPU);
    visit("hostMemoryMiB", self.hostMemoryMiB);
    visit("confidence", self.confidence);
    visit("assumptions", self.assumptions);
    visit("formulaVersion", self.formulaVersion);
    visit("measuredPeakMiB", self.measuredPeakMiB);
  }
  bool operator==(const SizingStatus&) const = default;
};

/// The parallel layout of one attempt.
struct LayoutStatus {
  std::int64_t gpus = 0, nodes = 0, gpusPerNode = 0;
  std::int64_t tensor = 1, pipeline = 1, virtualStages = 1, context = 1, expert = 1, data = 1, replicate = 1;
  std::optional<Sharding> sharding;
  std::optional<Offload> offload;
  std::int64_t microBatchSize = 1, gradientAccumulation = 1;
  std::optional<ActivationCheckpointing> activationCheckpointing;
  std::optional<std::string> text;  ///< the same in one phrase: "ZeRO-3 over 8, micro-batch 2"

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("gpus", self.gpus);
    visit("nodes", self.nodes);
    visit("gpusPerNode", self.gpusPerNode);
    visit("tensor", self.tensor);
    visit("pipeline", self.pipeline);
    visit("virtualStages", self.virtualStages);
    visit("context", self.context);
    visit("expert", self.expert);
    visit("data", self.data);
    visit("replicate", self.replicate);
    visit("sharding", self.sharding);
    visit("offload", self.offload);
    visit("microBatchSize", self.microBatchSize);
    visit("gradientAccumulation", self.gradientAccumulation);
    visit("activationCheckpointing", self.activationCheckpointing);
    visit("text", self.text);
  }
  bool operator==(const LayoutStatus&) const = default;
};

/// One candidate pool with its verdict. Money is a decimal string in `currency` of the placement.
struct PlacementOption {
  std::string pool;
  Verdict verdict = Verdict::Refused;
  std::string reason;  ///< code for machines: InsufficientMemory, PolicyDenied, ...
  std::string detail;  ///< the same in words with the numbers
  std::optional<std::int64_t> gpus, requiredMiBPerGPU, usableMiBPerGPU, freeGPUs;
  std::optional<std::string> layout;
  std::optional<std::string> pricePerHour, expectedCost;
  std::optional<double> expectedHours, expectedInterruptions;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("pool", self.pool);
    visit("verdict", self.verdict);
    visit("reason", self.reason);
    visit("detail", self.detail);
    visit("gpus", self.gpus);
    visit("requiredMiBPerGPU", self.requiredMiBPerGPU);
    visit("usableMiBPerGPU", self.usableMiBPerGPU);
    visit("freeGPUs", self.freeGPUs);
    visit("layout", self.layout);
    visit("pricePerHour", self.pricePerHour);
    visit("expectedCost", self.expectedCost);
    visit("expectedHours", self.expectedHours);
    visit("expectedInterruptions", self.expectedInterruptions);
  }
  bool operator==(const PlacementOption&) const = default;
};

/// The policy as it was when the attempt was planned; an edit never changes a running attempt.
struct EffectivePolicyStatus {
  std::optional<std::string> name;
  std::optional<std::int64_t> generation;
  std::optional<PlacementObjective> objective;
  std::vector<std::string> rules;  ///< in words

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("generation", self.generation);
    visit("objective", self.objective);
    visit("rules", self.rules);
  }
  bool operator==(const EffectivePolicyStatus&) const = default;
};

struct PlacementStatus {
  std::optional<std::string> pool;
  std::optional<std::string> zone;
  std::optional<CapacityType> capacityType;
  std::optional<Interconnect> interconnect;
  std::optional<std::string> gpu;  ///< product
  std::optional<LayoutStatus> layout;
  std::optional<std::string> currency, pricePerHour, expectedCost;
  std::optional<double> expectedHours, expectedInterruptions;
  std::vector<std::string> explanation;
  std::vector<PlacementOption> options;  ///< at most 10
  std::optional<EffectivePolicyStatus> policy;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("pool", self.pool);
    visit("zone", self.zone);
    visit("capacityType", self.capacityType);
    visit("interconnect", self.interconnect);
    visit("gpu", self.gpu);
    visit("layout", self.layout);
    visit("currency", self.currency);
    visit("pricePerHour", self.pricePerHour);
    visit("expectedCost", self.expectedCost);
    visit("expectedHours", self.expectedHours);
    visit("expectedInterruptions", self.expectedInterruptions);
    visit("explanation", self.explanation);
    visit("options", self.options);
    visit("policy", self.policy);
  }
  bool operator==(const PlacementStatus&) const = default;
};

/// One life of the whole gang between two restarts.
struct AttemptStatus {
  std::int64_t number = 0;  ///< from 1
  std::string pool;
  std::optional<std::string> jobName, jobUID;
  std::optional<std::string> layout;
  std::optional<std::int64_t> gpus, nodes;
  std::optional<std::string> startTime, runningTime, endTime;
  std::optional<AttemptCause> cause;  ///< set when it has ended
  std::optional<std::string> detail;  ///< the ending in words, with numbers
  std::optional<std::int64_t> resumedFromStep, lastStep;
  std::optional<std::string> specHash;  ///< of the spec it was made from; absent in records of older versions

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("number", self.number);
    visit("pool", self.pool);
    visit("jobName", self.jobName);
    visit("jobUID", self.jobUID);
    visit("layout", self.layout);
    visit("gpus", self.gpus);
    visit("nodes", self.nodes);
    visit("startTime", self.startTime);
    visit("runningTime", self.runningTime);
    visit("endTime", self.endTime);
    visit("cause", self.cause);
    visit("detail", self.detail);
    visit("resumedFromStep", self.resumedFromStep);
    visit("lastStep", self.lastStep);
    visit("specHash", self.specHash);
  }
  bool operator==(const AttemptStatus&) const = default;
};

/// Endings so far, by cause. Only userFailures count against spec.restart.maxFailures.
struct EndingCounters {
  std::int64_t preemptions = 0, infrastructure = 0, userFailures = 0, outOfMemory = 0, policyEvictions = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("preemptions", self.preemptions);
    visit("infrastructure", self.infrastructure);
    visit("userFailures", self.userFailures);
    visit("outOfMemory", self.outOfMemory);
    visit("policyEvictions", self.policyEvictions);
  }
  bool operator==(const EndingCounters&) const = default;
};

struct CheckpointStatus {
  std::optional<std::string> claim;
  std::optional<std::string> size;  ///< quantity
  std::optional<std::string> zone;  ///< where the bound volume is; absent when it is in none or not bound
  std::optional<std::int64_t> checkpointMiB;
  std::optional<std::int64_t> intervalSeconds;
  std::optional<std::int64_t> lastStep;
  std::vector<std::string> explanation;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("claim", self.claim);
    visit("size", self.size);
    visit("zone", self.zone);
    visit("checkpointMiB", self.checkpointMiB);
    visit("intervalSeconds", self.intervalSeconds);
    visit("lastStep", self.lastStep);
    visit("explanation", self.explanation);
  }
  bool operator==(const CheckpointStatus&) const = default;
};

struct ProgressStatus {
  std::optional<std::int64_t> step, totalSteps;
  std::optional<double> tokens, loss;
  std::optional<std::string> percent;  ///< "41%"
  std::optional<std::string> updated;  ///< RFC 3339

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("step", self.step);
    visit("totalSteps", self.totalSteps);
    visit("tokens", self.tokens);
    visit("loss", self.loss);
    visit("percent", self.percent);
    visit("updated", self.updated);
  }
  bool operator==(const ProgressStatus&) const = default;
};

struct TrainingJobStatus {
  std::optional<std::int64_t> observedGeneration;
  std::optional<std::string> phase;  ///< one word for the STATUS column
  std::vector<Condition> conditions;
  std::optional<SizingStatus> sizing;
  std::optional<PlacementStatus> placement;
  std::optional<std::int64_t> attempt;  ///< number of the newest attempt; absent before the first
  std::vector<AttemptStatus> attempts;  ///< newest last, at most 10
  std::optional<EndingCounters> endings;
  std::optional<CheckpointStatus> checkpoint;
  std::optional<ProgressStatus> progress;
  std::optional<std::string> startTime, completionTime;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("observedGeneration", self.observedGeneration);
    visit("phase", self.phase);
    visit("conditions", self.conditions);
    visit("sizing", self.sizing);
    visit("placement", self.placement);
    visit("attempt", self.attempt);
    visit("attempts", self.attempts);
    visit("endings", self.endings);
    visit("checkpoint", self.checkpoint);
    visit("progress", self.progress);
    visit("startTime", self.startTime);
    visit("completionTime", self.completionTime);
  }
  bool operator==(const TrainingJobStatus&) const = default;
};

}  // namespace loadline::api
