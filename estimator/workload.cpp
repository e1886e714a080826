#include "estimator/workload.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "api/json_member.h"
#include "api/names.h"
#include "api/training_job.h"
#include "base/text.h"

namespace loadline::estimator {
namespace {

using api::list_member;
using api::member;
using api::text;
using Type = FieldError::Type;

constexpr std::int64_t kDefaultRank = 16;
/// The schema's bounds: they keep slips out and sums readable.
constexpr std::int64_t kMaxSequence = 16'777'216;
constexpr std::int64_t kMaxMicroBatch = 65'536;
constexpr std::int64_t kMaxBatch = 16'777'216;
constexpr std::int64_t kMaxRank = 8192;
constexpr std::int64_t kMaxLayers = 4096;

/// Collects what is wrong while the spec is resolved.
struct Resolver {
  const api::TrainingJobSpec& spec;
  const Tables& tables;
  std::vector<FieldError> errors;

  void refuse(Type type, std::string field, std::string value, std::string detail) {
    errors.push_back({type, std::move(field), std::move(value), std::move(detail)});
  }
  /// Takes the value, or keeps the errors and gives a stand-in so that the rest is checked too.
  Model take(Result<Model> model) {
    if (model) return std::move(*model);
    for (const FieldError& e : model.error().fields) errors.push_back(e);
    return {};
  }
  std::int64_t bounded(std::int64_t value, const char* field, std::int64_t most) {
    if (value < 1 || value > most) {
      refuse(Type::Invalid, field, std::to_string(value), "must be between 1 and " + std::to_string(most));
      return 1;
    }
    return value;
  }
};

Model resolve_model(Resolver& r) {
  const api::ModelSpec& model = r.spec.model;
  const int given = int{model.preset.has_value()} + int{model.huggingFaceConfig.has_value()} +
                    int{model.huggingFaceConfigMapRef.has_value()} + int{model.architecture.has_value()} +
                    int{model.parameters.has_value()};
  // A ConfigMap that the caller has read arrives as both the reference and the config.
  const bool read_reference = model.huggingFaceConfigMapRef && model.huggingFaceConfig;
  if (given == 0) {
    r.refuse(Type::Required, "spec.model", "", "give one of preset, huggingFaceConfig, architecture, parameters");
    return {};
  }
  if (given > 1 && !(given == 2 && read_reference)) {
    r.refuse(Type::Invalid, "spec.model", "",
             "give only one of preset, huggingFaceConfig, huggingFaceConfigMapRef, architecture, parameters");
    return {};
  }
  if (model.preset) return r.take(model_from_preset(*model.preset, r.tables));
  if (model.huggingFaceConfig) {
    return r.take(model_from_hf_config(*model.huggingFaceConfig, "spec.model.huggingFaceConfig", r.tables));
  }
  if (model.architecture) return r.take(model_from_architecture(*model.architecture));
  if (model.parameters) return r.take(model_from_parameters(*model.parameters));
  r.refuse(Type::NotSupported, "spec.model.huggingFaceConfigMapRef", model.huggingFaceConfigMapRef->name,
           "not supported yet: paste the config.json under spec.model.huggingFaceConfig");
  return {};
}

/// "q_proj", "lm_head" and the like by the short names of matrices().
std::string short_target(std::string target) {
  if (target == "lm_head") return "head";
  if (target == "embed_tokens") return "embed";
  const std::size_t suffix = target.rfind("_proj");
  if (suffix != std::string::npos && suffix + 5 == target.size()) target.resize(suffix);
  return target;
}

bool adapts(const Lora& lora, const Matrix& matrix) {
  if (lora.targets.empty()) return matrix.in_layer;
  return std::find(lora.targets.begin(), lora.targets.end(), matrix.name) != lora.targets.end();
}

void resolve_lora(Resolver& r, Workload& w) {
  const bool adapters = w.method == Method::Lora || w.method == Method::QLora;
  const std::optional<api::LoraSpec>& lora = r.spec.training.lora;
  if (!adapters) {
    if (lora) {
      r.refuse(Type::Forbidden, "spec.training.lora", "", "only with method lora or qlora");
    }
    return;
  }
  w.lora.rank = r.bounded(lora ? lora->rank.value_or(kDefaultRank) : kDefaultRank, "spec.training.lora.rank", kMaxRank);
  if (!lora) return;
  w.lora.train_embeddings = lora->trainEmbeddings.value_or(false);
  w.lora.magnitudes = lora->dora.value_or(false);
  if (lora->upcast && w.method != Method::QLora) {
    r.refuse(Type::Forbidden, "spec.training.lora.upcast", *lora->upcast ? "true" : "false", "only with method qlora");
  }
  if (lora->quantization && w.method != Method::QLora) {
    r.refuse(Type::Forbidden, "spec.training.lora.quantization", std::string(api::name_of(*lora->quantization)),
             "only with method qlora");
  }
  static constexpr std::array<std::string_view, 11> kTargets{"q",    "k",     "v",    "o",  "gate", "up",
                                                             "down", "embed", "head", "in", "out"};
  for (std::size_t i = 0; i < lora->targets.size(); ++i) {
    const std::string target = short_target(lora->targets[i]);
    if (target == "all-linear" || target == "all") continue;  // the default
    if (std::find(kTargets.begin(), kTargets.end(), target) == kTargets.end()) {
      r.refuse(Type::NotSupported, "spec.training.lora.targets[" + std::to_string(i) + "]",
               cut_utf8(lora->targets[i], 64), "must be one of q, k, v, o, gate, up, down, embed, head, in, out");
      continue;
    }
    w.lora.targets.push_back(target);
  }
}

void resolve_method(Resolver& r, Workload& w) {
  const api::TrainingSpec& t = r.spec.training;
  w.method = t.method.value_or(Method::Full);
  resolve_lora(r, w);
  if (w.method == Method::Freeze) {
    if (w.model.fidelity == Fidelity::LowerBound) {
      r.refuse(Type::NotSupported, "spec.training.method", "freeze",
               "not supported yet with spec.model.parameters: the layers are not known");
    } else if (!t.frozenLayers) {
      r.refuse(Type::Required, "spec.training.frozenLayers", "", "says how many leading layers are not trained");
    } else if (*t.frozenLayers < 0 || (w.model.layers > 0 && *t.frozenLayers > w.model.layers)) {
      r.refuse(Type::Invalid, "spec.training.frozenLayers", std::to_string(*t.frozenLayers),
               "must be between 0 and the model's layers (" + std::to_string(w.model.layers) + ")");
    } else {
      w.frozen_layers = *t.frozenLayers;
    }
  } else if (t.frozenLayers) {
    r.refuse(Type::Forbidden, "spec.training.frozenLayers", std::to_string(*t.frozenLayers), "only with method freeze");
  }
  if (w.method == Method::QLora && (t.precision == Precision::Fp8 || t.precision == Precision::Fp32)) {
    r.refuse(Type::Invalid, "spec.training.precision", std::string(api::name_of(*t.precision)),
             "4-bit base weights compute in bf16 or fp16: use bf16-mixed, bf16 or fp16-mixed");
  }
}

/// Options that go only with others: none is dropped without a word.
void resolve_options(Resolver& r, Workload& w) {
  const api::TrainingSpec& t = r.spec.training;
  w.compile = t.compile.value_or(false);
  w.recompute_every = r.bounded(t.checkpointEvery.value_or(1), "spec.training.checkpointEvery", kMaxLayers);
  w.optimizer_in_backward = t.optimizerInBackward.value_or(false);
  const bool some_recompute = !w.recompute || *w.recompute == Recompute::Full || *w.recompute == Recompute::Offload;
  if (w.recompute_every > 1 && !some_recompute) {
    r.refuse(Type::Forbidden, "spec.training.checkpointEvery", std::to_string(w.recompute_every),
             "only with activationCheckpointing full or offload");
  }
  if (w.optimizer_in_backward && (w.method == Method::Lora || w.method == Method::QLora)) {
    r.refuse(Type::Forbidden, "spec.training.optimizerInBackward", "true",
             "only with methods full and freeze: gradients of adapters are small");
  }
  if (!r.spec.parallelism) return;
  const api::ParallelismSpec& p = *r.spec.parallelism;
  if (p.virtualStages.value_or(1) > 1 && p.pipeline.value_or(2) < 2) {
    r.refuse(Type::Forbidden, "spec.parallelism.virtualStages", std::to_string(*p.virtualStages),
             "only with pipeline 2 or more");
  }
  if (p.replicate.value_or(1) > 1 && p.sharding.value_or(Sharding::Zero3) == Sharding::None) {
    r.refuse(Type::Forbidden, "spec.parallelism.replicate", std::to_string(*p.replicate),
             "only with sharding zero1, zero2 or zero3");
  }
}

void resolve_objective(Resolver& r, Workload& w) {
  w.objective = r.spec.training.objective.value_or(Objective::Sft);
  if (w.objective == Objective::Ppo || w.objective == Objective::Grpo) {
    r.refuse(Type::NotSupported, "spec.training.objective", std::string(api::name_of(w.objective)),
             "not supported yet: reward, critic and rollout models are not sized; use pretrain, sft or dpo");
  }
  if (w.objective == Objective::Dpo) {
    w.sequences_per_sample = 2;  // the chosen and the rejected answer pass together
    // With adapters the reference is the base with the adapter switched off: no second copy.
    w.reference_copies = w.method == Method::Full || w.method == Method::Freeze ? 1 : 0;
  }
}

void resolve_batch(Resolver& r, Workload& w) {
  const api::TrainingSpec& t = r.spec.training;
  if (!t.sequenceLength && w.model.tokens > 0) {
    w.sequence = w.model.tokens;
  } else if (!t.sequenceLength) {
    r.refuse(Type::Required, "spec.training.sequenceLength", "", "activations cannot be sized without it");
    w.sequence = 1;
  } else {
    w.sequence = r.bounded(*t.sequenceLength, "spec.training.sequenceLength", kMaxSequence);
  }
  // A trained position table is the one hard end of a sequence; rotary models extrapolate.
  if (w.model.learned_positions > 0 && w.sequence > w.model.learned_positions) {
    r.refuse(Type::Invalid, "spec.training.sequenceLength", std::to_string(w.sequence),
             "the model's position table has " + std::to_string(w.model.learned_positions) + " rows");
  }
  if (t.microBatchSize) w.micro_batch = r.bounded(*t.microBatchSize, "spec.training.microBatchSize", kMaxMicroBatch);
  if (t.globalBatchSize) w.global_batch = r.bounded(*t.globalBatchSize, "spec.training.globalBatchSize", kMaxBatch);
  if (w.micro_batch && w.global_batch && *w.global_batch % *w.micro_batch != 0) {
    r.refuse(Type::Invalid, "spec.training.globalBatchSize", std::to_string(*w.global_batch),
             "must be a whole number of micro-batches of " + std::to_string(*w.micro_batch));
  }
}

void resolve_length(Resolver& r, Workload& w) {
  const api::TrainingSpec& t = r.spec.training;
  const int given = int{t.tokens.has_value()} + int{t.steps.has_value()} + int{t.epochs.has_value()};
  if (given > 1) {
    r.refuse(Type::Invalid, "spec.training", "", "give at most one of tokens, steps, epochs");
    return;
  }
  if (t.tokens) w.total_tokens = *t.tokens;
  if (t.steps && w.global_batch) {
    w.total_tokens = *t.steps * static_cast<double>(*w.global_batch) * static_cast<double>(w.sequence);
  } else if (t.steps) {
    r.refuse(Type::Required, "spec.training.globalBatchSize", "", "steps need it to say how much is trained");
  }
  if (t.epochs && t.datasetTokens) {
    w.total_tokens = *t.epochs * *t.datasetTokens;
  } else if (t.epochs) {
    r.refuse(Type::Required, "spec.training.datasetTokens", "", "epochs need it to say how much is trained");
  }
}

void count_adapters(Workload& w) {
  const double layers = w.model.shared_layers ? 1 : std::max(1.0, static_cast<double>(w.model.layers));
  const double experts = std::max(1.0, static_cast<double>(w.model.moe.experts));
  const double top_k = std::max(1.0, static_cast<double>(w.model.moe.top_k));
  for (const Matrix& matrix : matrices(w.model)) {
    if (!adapts(w.lora, matrix)) continue;
    double each = static_cast<double>(w.lora.rank) * (matrix.in + matrix.out);
    if (w.lora.magnitudes) each += matrix.out;
    w.adapters += matrix.count * each;
    if (matrix.routed) w.expert_adapters += matrix.count * each;
    if (!matrix.in_layer || !matrix.in_main) continue;
    // Of the routed experts a token passes only its own.
    const double passed = matrix.routed ? matrix.count * top_k / experts : matrix.count;
    w.adapted_inputs += matrix.in * passed / layers;
  }
}

/// Parameters that get gradients, by method.
void count_trained(Workload& w) {
  const ParameterCount& p = w.parameters;
  const double layers = static_cast<double>(w.model.layers);
  w.adapters = w.expert_adapters = w.adapted_inputs = 0;
  switch (w.method) {
    case Method::Full:
      w.trained = p.total;
      w.trained_vectors = p.embedding + p.head + p.final_norm + layers * p.layer.norms;
      return;
    case Method::Freeze: {
      const double trained_layers = layers - static_cast<double>(w.frozen_layers);
      const double layer = p.layer.attention + p.layer.mlp + p.layer.experts + p.layer.norms;
      w.trained_vectors = p.head + p.final_norm + trained_layers * p.layer.norms;
      w.trained = trained_layers * (layer - p.layer.norms) + w.trained_vectors;
      return;
    }
    case Method::Lora:
    case Method::QLora:
      count_adapters(w);
      w.trained_vectors = w.lora.train_embeddings ? p.embedding + p.head : 0;
      w.trained = w.adapters + w.trained_vectors;
      return;
  }
}

ErrorBands bands_of(const Workload& w, const Tables& tables) {
  const auto within = [&](const std::string& job_class) {
    const AccuracyRow* row = tables.accuracy_of(job_class);
    return row != nullptr ? row->within : 0;
  };
  if (w.model.moe.experts > 0) return {within("moe"), within("moe"), within("moe")};
  const bool adapters = w.method == Method::Lora || w.method == Method::QLora;
  const std::string method(adapters ? api::name_of(w.method) : "full");
  return {within(method + "-1gpu"), within(method + "-sharded"), within("tp-pp-cp")};
}

/// Whether expandable segments are on: the operator sets them unless the trainer has the variable itself. Of its two
/// names (newer PyTorch reads the shorter first) every one that is given must say so.
bool expandable_segments(const nlohmann::json& pod_template) {
  for (const nlohmann::json& container : list_member(member(pod_template, "spec"), "containers")) {
    if (text(member(container, "name")) != api::kTrainerContainer) continue;
    for (const nlohmann::json& variable : list_member(container, "env")) {
      const std::string name = text(member(variable, "name"));
      if (name != "PYTORCH_CUDA_ALLOC_CONF" && name != "PYTORCH_ALLOC_CONF") continue;
      if (text(member(variable, "value")).find("expandable_segments:True") == std::string::npos) return false;
    }
  }
  return true;
}

template <class T>
T row_or(const T* row) {
  return row != nullptr ? *row : T{};
}

}  // namespace

Result<Workload> workload_from(const api::TrainingJobSpec& spec) { return workload_from(spec, Tables::builtin()); }

Result<Workload> workload_from(const api::TrainingJobSpec& spec, const Tables& tables) {
  Resolver r{spec, tables, {}};
  Workload w;
  w.model = resolve_model(r);
  const bool model_known = r.errors.empty();
  w.precision = spec.training.precision.value_or(Precision::Bf16Mixed);
  w.attention = spec.training.attention.value_or(Attention::Flash);
  w.loss = spec.training.loss.value_or(Loss::Standard);
  w.recompute = spec.training.activationCheckpointing;
  resolve_method(r, w);
  resolve_options(r, w);
  resolve_objective(r, w);
  resolve_batch(r, w);
  resolve_length(r, w);
  w.expandable_segments = expandable_segments(spec.podTemplate);
  w.recipe = row_or(tables.recipe(api::name_of(spec.training.framework.value_or(api::Framework::Generic))));
  if (spec.parallelism && spec.parallelism->sequenceParallel) {
    w.recipe.sequence_parallel = *spec.parallelism->sequenceParallel;
  }
  if (w.method == Method::QLora) {
    w.kbit_upcast =
        spec.training.lora ? spec.training.lora->upcast.value_or(w.recipe.kbit_upcast) : w.recipe.kbit_upcast;
  }
  w.quantization =
      spec.training.lora ? spec.training.lora->quantization.value_or(w.recipe.quantization) : w.recipe.quantization;
  w.quantised_bytes = w.recipe.quantised_bytes.at(static_cast<std::size_t>(w.quantization));
  w.optimizer = row_or(tables.optimizer(api::name_of(spec.training.optimizer.value_or(api::Optimizer::AdamW))));
  if (!r.errors.empty()) return Error::invalid(std::move(r.errors));
  if (model_known) {
    w.parameters = count_parameters(w.model);
    count_trained(w);
    w.bands = bands_of(w, tables);
  }
  return w;
}

LayoutConstraints constraints_from(const api::TrainingJobSpec& spec) {
  LayoutConstraints c;
  if (!spec.parallelism) return c;
  c.tensor = spec.parallelism->tensor;
  c.pipeline = spec.parallelism->pipeline;
  c.context = spec.parallelism->context;
  c.expert = spec.parallelism->expert;
  c.replicate = spec.parallelism->replicate;
  c.virtual_stages = spec.parallelism->virtualStages;
  c.sharding = spec.parallelism->sharding;
  c.offload = spec.parallelism->offload;
  return c;
}

std::string method_text(const Workload& w) {
  switch (w.method) {
    case Method::Full: return "full";
    case Method::Lora: return "LoRA rank " + std::to_string(w.lora.rank);
    case Method::QLora: return "QLoRA rank " + std::to_string(w.lora.rank);
    case Method::Freeze: return "the last " + std::to_string(w.model.layers - w.frozen_layers) + " layers";
  }
  return "";
}

Workload with_lora(const Workload& workload, std::int64_t rank, bool quantised) {
  Workload w = workload;
  w.method = quantised ? Method::QLora : Method::Lora;
  w.kbit_upcast = quantised && w.recipe.kbit_upcast;
  w.lora = {rank, {}};
  w.frozen_layers = 0;
  w.reference_copies = 0;
  w.optimizer_in_backward = false;
  count_trained(w);
  w.bands = bands_of(w, Tables::builtin());
  return w;
}

}  // namespace loadline::estimator
