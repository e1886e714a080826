// TrainingJob (namespaced, short name tj): what an ML engineer asks for.
// `spec` is the user's intent and is never written by Loadline after admission.
// See api/meta.h for how fields are listed and what absence means.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/enums.h"
#include "api/meta.h"
#include "api/training_job_status.h"

namespace loadline::api {

/// A key of a ConfigMap in the job's own namespace.
struct ConfigMapKeyRef {
  static constexpr std::array<std::string_view, 1> kRequired{"name"};

  std::string name;
  std::optional<std::string> key;  ///< default "config.json"

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("key", self.key);
  }
  bool operator==(const ConfigMapKeyRef&) const = default;
};

/// The shape of a transformer by numbers. Counts are plain integers.
struct ArchitectureSpec {
  std::optional<std::int64_t> layers, hidden, heads, kvHeads, headDim, ffn, vocab;
  std::optional<bool> gatedMlp, tiedEmbeddings, attentionBias, mlpBias, qkNorm;
  std::optional<std::int64_t> maxPositions;  ///< only for learned position tables
  std::optional<std::int64_t> experts, topK, expertFfn, sharedExperts, firstDenseLayers;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("layers", self.layers);
    visit("hidden", self.hidden);
    visit("heads", self.heads);
    visit("kvHeads", self.kvHeads);
    visit("headDim", self.headDim);
    visit("ffn", self.ffn);
    visit("vocab", self.vocab);
    visit("gatedMlp", self.gatedMlp);
    visit("tiedEmbeddings", self.tiedEmbeddings);
    visit("attentionBias", self.attentionBias);
    visit("mlpBias", self.mlpBias);
    visit("qkNorm", self.qkNorm);
    visit("maxPositions", self.maxPositions);
    visit("experts", self.experts);
    visit("topK", self.topK);
    visit("expertFfn", self.expertFfn);
    visit("sharedExperts", self.sharedExperts);
    visit("firstDenseLayers", self.firstDenseLayers);
  }
  bool operator==(const ArchitectureSpec&) const = default;
};

/// Exactly one member is set.
struct ModelSpec {
  std::optional<std::string> preset;
  std::optional<nlohmann::json> huggingFaceConfig;  ///< a config.json as it is, keys under their own names
  std::optional<ConfigMapKeyRef> huggingFaceConfigMapRef;
  std::optional<ArchitectureSpec> architecture;
  std::optional<double> parameters;  ///< a count; gives a lower bound that is never enforced

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("preset", self.preset);
    visit("huggingFaceConfig", self.huggingFaceConfig);
    visit("huggingFaceConfigMapRef", self.huggingFaceConfigMapRef);
    visit("architecture", self.architecture);
    visit("parameters", self.parameters);
  }
  bool operator==(const ModelSpec&) const = default;
};

struct LoraSpec {
  std::optional<std::int64_t> rank;  ///< default 16
  std::vector<std::string> targets;  ///< q k v o gate up down embed head; empty: all linear layers of the blocks
  std::optional<bool> trainEmbeddings = {};  ///< embedding and head are trained whole, beside the adapters
  std::optional<bool> dora = {};             ///< a trained magnitude per output of every adapted matrix
  std::optional<bool> upcast = {};  ///< method qlora: what is not quantised is raised to fp32; default the framework's
  std::optional<Quantization> quantization =
      {};  ///< method qlora: how frozen weights are stored; default the framework's

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank);
    visit("targets", self.targets);
    visit("trainEmbeddings", self.trainEmbeddings);
    visit("dora", self.dora);
    visit("upcast", self.upcast);
    visit("quantization", self.quantization);
  }
  bool operator==(const LoraSpec&) const = default;
};

struct TrainingSpec {
  std::optional<Framework> framework;  ///< default generic
  std::optional<Method> method;        ///< default full
  std::optional<LoraSpec> lora;
  std::optional<std::int64_t> frozenLayers;  ///< method freeze: layers from the input that are not trained
  std::optional<Objective> objective;        ///< default sft
  std::optional<Precision> precision;        ///< default bf16-mixed
  std::optional<Optimizer> optimizer;        ///< default adamw
  std::optional<std::int64_t> sequenceLength;
  std::optional<std::int64_t> microBatchSize;                      ///< per data-parallel rank; absent: chosen
  std::optional<std::int64_t> globalBatchSize;                     ///< sequences per optimizer step
  std::optional<ActivationCheckpointing> activationCheckpointing;  ///< absent: chosen
  std::optional<Attention> attention;                              ///< default flash
  std::optional<std::int64_t> checkpointEvery;                     ///< recompute only every n-th layer; default 1
  std::optional<Loss> loss;                                        ///< default standard
  std::optional<bool> compile;                                     ///< the blocks run through a compiler; default false
  std::optional<bool> optimizerInBackward;  ///< each weight is updated as its gradient comes; default false
  std::optional<double> tokens;             ///< length of the run; at most one of tokens, steps, epochs
  std::optional<double> steps;
  std::optional<double> epochs;
  std::optional<double> datasetTokens;  ///< tokens of one epoch; needed with epochs

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("framework", self.framework);
    visit("method", self.method);
    visit("lora", self.lora);
    visit("frozenLayers", self.frozenLayers);
    visit("objective", self.objective);
    visit("precision", self.precision);
    visit("optimizer", self.optimizer);
    visit("sequenceLength", self.sequenceLength);
    visit("microBatchSize", self.microBatchSize);
    visit("globalBatchSize", self.globalBatchSize);
    visit("activationCheckpointing", self.activationCheckpointing);
    visit("attention", self.attention);
    visit("checkpointEvery", self.checkpointEvery);
    visit("loss", self.loss);
    visit("compile", self.compile);
    visit("optimizerInBackward", self.optimizerInBackward);
    visit("tokens", self.tokens);
    visit("steps", self.steps);
    visit("epochs", self.epochs);
    visit("datasetTokens", self.datasetTokens);
  }
  bool operator==(const TrainingSpec&) const = default;
};

/// Every field omitted is chosen; every field given is kept.
struct ParallelismSpec {
  std::optional<std::int64_t> tensor, pipeline, context, expert;
  std::optional<std::int64_t> virtualStages;  ///< model chunks per pipeline stage; default 1
  std::optional<std::int64_t> replicate;      ///< groups that each hold all shards (hybrid sharding); default 1
  std::optional<bool> sequenceParallel;  ///< tensor parallel also splits norms and residuals; default the framework's
  std::optional<Sharding> sharding;
  std::optional<Offload> offload;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("tensor", self.tensor);
    visit("pipeline", self.pipeline);
    visit("context", self.context);
    visit("expert", self.expert);
    visit("virtualStages", self.virtualStages);
    visit("replicate", self.replicate);
    visit("sequenceParallel", self.sequenceParallel);
    visit("sharding", self.sharding);
    visit("offload", self.offload);
  }
  bool operator==(const ParallelismSpec&) const = default;
};

/// Either count, or min and max; all absent: chosen.
struct GpusSpec {
  std::optional<std::int64_t> count, min, max;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("count", self.count);
    visit("min", self.min);
    visit("max", self.max);
  }
  bool operator==(const GpusSpec&) const = default;
};

struct PlacementSpec {
  std::optional<CapacityWish> capacityType;      ///< default any
  std::optional<InterconnectWish> interconnect;  ///< default any
  std::vector<std::string> gpuModels;            ///< words of a product, e.g. "A100", "H100"; empty: any
  std::vector<std::string> pools;                ///< GPUPool names; empty: any
  std::optional<std::string> policy;             ///< a PlacementPolicy that selects this job

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("capacityType", self.capacityType);
    visit("interconnect", self.interconnect);
    visit("gpuModels", self.gpuModels);
    visit("pools", self.pools);
    visit("policy", self.policy);
  }
  bool operator==(const PlacementSpec&) const = default;
};

struct MemorySpec {
  std::optional<Enforcement> enforcement;         ///< default Enforce, within the policy's floor
  std::optional<std::int64_t> marginPercent;      ///< added to the estimate at the gate
  std::optional<std::int64_t> overrideMiBPerGPU;  ///< replaces the estimate where the policy allows it

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("enforcement", self.enforcement);
    visit("marginPercent", self.marginPercent);
    visit("overrideMiBPerGPU", self.overrideMiBPerGPU);
  }
  bool operator==(const MemorySpec&) const = default;
};

/// Either claimName (an existing claim in the job's namespace), or how to make one.
struct CheckpointVolumeSpec {
  std::optional<std::string> claimName;
  std::optional<std::string> storageClassName;  ///< absent: the cluster's default; "" only if written so
  std::vector<std::string> accessModes;         ///< absent: ReadWriteMany on several nodes, else ReadWriteOnce
  std::optional<std::string> size;              ///< "auto" (default) or a quantity
  std::optional<RetainPolicy> retain;           ///< default Retain

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("claimName", self.claimName);
    visit("storageClassName", self.storageClassName);
    visit("accessModes", self.accessModes);
    visit("size", self.size);
    visit("retain", self.retain);
  }
  bool operator==(const CheckpointVolumeSpec&) const = default;
};

/// How progress is read from the trainer's log: JSON lines by default, or a pattern.
struct ProgressSpec {
  std::optional<std::string> pattern;  ///< a regular expression with a group named "step"

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("pattern", self.pattern);
  }
  bool operator==(const ProgressSpec&) const = default;
};

struct CheckpointSpec {
  std::optional<std::string> path;       ///< default /checkpoints
  std::optional<std::string> interval;   ///< "auto" (default) or a duration such as 10m
  std::optional<std::int64_t> keepLast;  ///< complete checkpoints kept; default 2
  /// File in a checkpoint's directory that is written last; default .complete
  std::optional<std::string> completeMarker;
  std::optional<CheckpointVolumeSpec> volume;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("interval", self.interval);
    visit("keepLast", self.keepLast);
    visit("completeMarker", self.completeMarker);
    visit("volume", self.volume);
  }
  bool operator==(const CheckpointSpec&) const = default;
};

struct RestartSpec {
  std::optional<std::int64_t> maxFailures;     ///< user failures before the job fails; default 3
  std::optional<std::int64_t> maxPreemptions;  ///< absent: unlimited
  std::optional<std::string> backoff;          ///< duration before a retry after a user failure; default 30s, doubling

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("maxFailures", self.maxFailures);
    visit("maxPreemptions", self.maxPreemptions);
    visit("backoff", self.backoff);
  }
  bool operator==(const RestartSpec&) const = default;
};

struct TrainingJobSpec {
  static constexpr std::array<std::string_view, 3> kRequired{"model", "training", "template"};

  ModelSpec model;
  TrainingSpec training;
  std::optional<ParallelismSpec> parallelism;
  std::optional<GpusSpec> gpus;
  std::optional<PlacementSpec> placement;
  std::optional<MemorySpec> memory;
  std::optional<CheckpointSpec> checkpoint;
  std::optional<ProgressSpec> progress;
  std::optional<RestartSpec> restart;
  std::optional<Launcher> launcher;  ///< default torchrun
  nlohmann::json podTemplate;        ///< spec.template: a PodTemplateSpec; the container "trainer" is completed by us
  std::optional<std::string> queueName, managedBy;
  std::optional<bool> suspend;
  std::optional<std::int64_t> activeDeadlineSeconds, ttlSecondsAfterFinished;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("training", self.training);
    visit("parallelism", self.parallelism);
    visit("gpus", self.gpus);
    visit("placement", self.placement);
    visit("memory", self.memory);
    visit("checkpoint", self.checkpoint);
    visit("progress", self.progress);
    visit("restart", self.restart);
    visit("launcher", self.launcher);
    visit("template", self.podTemplate);
    visit("queueName", self.queueName);
    visit("managedBy", self.managedBy);
    visit("suspend", self.suspend);
    visit("activeDeadlineSeconds", self.activeDeadlineSeconds);
    visit("ttlSecondsAfterFinished", self.ttlSecondsAfterFinished);
  }
  bool operator==(const TrainingJobSpec&) const = default;
};

struct TrainingJob {
  static constexpr const char* kKind = "TrainingJob";
  static constexpr const char* kPlural = "trainingjobs";
  static constexpr std::array<std::string_view, 1> kRequired{"spec"};

  ObjectMeta metadata;
  TrainingJobSpec spec;
  TrainingJobStatus status;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("metadata", self.metadata);
    visit("spec", self.spec);
    visit("status", self.status);
  }
  bool operator==(const TrainingJob&) const = default;
};

}  // namespace loadline::api
