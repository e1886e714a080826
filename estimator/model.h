// A model's architecture as data, and what follows from it by counting: how many
// parameters there are, how many are used per token, and how many sit in matrices that
// can be quantised. A family is a set of field values, never a branch on a name.
//
// Thread-safety: plain values; the functions are pure.
// Ownership: a Model owns its strings; nothing points into the tables.
// Errors: values with the field path and the value as typed.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace loadline::api {
struct ArchitectureSpec;
}

namespace loadline::estimator {

struct Tables;

/// How much is known about the architecture.
enum class Fidelity {
  Exact,        ///< every field known: the count equals the published one
  Approximate,  ///< a family rule filled a field the source does not state
  LowerBound,   ///< only a parameter count: states can be sized, activations cannot
};

/// Weights of the normalisation of queries and keys.
enum class QkNorm {
  None,
  PerHead,    ///< one vector of head size each for queries and keys (Qwen3, Gemma 3)
  FullWidth,  ///< one vector over all heads (OLMo 2)
};

/// Mixture of experts; experts == 0 means a dense model.
struct Experts {
  std::int64_t experts = 0;             ///< routed experts per layer
  std::int64_t top_k = 0;               ///< experts each token visits
  std::int64_t expert_ffn = 0;          ///< width of one routed expert
  std::int64_t shared_ffn = 0;          ///< total width of the shared experts; 0 when there are none
  std::int64_t first_dense_layers = 0;  ///< leading layers with a dense MLP
  std::int64_t every = 1;               ///< one layer in `every` is a mixture layer
  bool router_bias = false;
  bool shared_gate = false;
};

/// Multi-head latent attention; kv_rank == 0 means ordinary attention.
struct LatentAttention {
  std::int64_t q_rank = 0;  ///< 0: queries are projected directly
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
};

/// A decoder-only transformer. All sizes are counts of elements.
struct Model {
  std::string name;    ///< "llama-3.1-8b", or what the user called it
  std::string family;  ///< "llama", "qwen2", ...: for people only
  Fidelity fidelity = Fidelity::Exact;

  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;           ///< width of the dense MLP
  std::int64_t mlp_matrices = 3;  ///< 3 gated, 2 plain
  std::int64_t vocab = 0;         ///< as in the checkpoint: padded
  bool tied = false;              ///< the head reuses the embedding matrix

  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;
  bool norm_bias = false;    ///< LayerNorm with bias; false for RMSNorm
  bool norm_weights = true;  ///< false when norms have no parameters (OLMo)
  QkNorm qk_norm = QkNorm::None;
  bool attention_sinks = false;
  bool embedding_norm = false;        ///< a norm right after the embedding (BLOOM)
  bool text_only = false;             ///< the published model also has a vision tower, which is not counted
  bool low_precision_logits = false;  ///< the modelling code never raises logits to fp32
  bool parallel_block = false;        ///< attention and MLP read the same input
  std::int64_t norms_per_layer = 2;
  std::int64_t learned_positions = 0;  ///< rows of a trained position table; 0 for rotary
  std::int64_t max_positions = 0;      ///< longest sequence the model is made for; 0 unknown
  std::int64_t sliding_window = 0;     ///< 0: every layer sees the whole sequence

  Experts moe;
  LatentAttention mla;

  double stated_parameters = 0;  ///< only with Fidelity::LowerBound
};

/// Counts of parameters. Doubles: exact below 2^53, and no input can overflow them.
struct ParameterCount {
  double embedding = 0;  ///< token and learned position tables
  double head = 0;       ///< output matrix and its bias; 0 when tied
  double final_norm = 0;
  struct Layer {  ///< an average layer: the sum over layers divided by their number
    double attention = 0;
    double mlp = 0;      ///< dense MLP, shared experts and router
    double experts = 0;  ///< routed experts, all of them
    double norms = 0;
  } layer;
  double total = 0;
  double active = 0;   ///< used per token; equals total for dense models
  double linear = 0;   ///< in the matrices of the layers: what k-bit loading quantises and LoRA can adapt
  double experts = 0;  ///< routed experts over all layers: what expert parallelism divides
};

[[nodiscard]] ParameterCount count_parameters(const Model& model);

/// Layers with routed experts; 0 for a dense model.
[[nodiscard]] double mixture_layers(const Model& model);

/// Input and output width of a weight matrix by the short name that adapter targets use
/// (q, k, v, o, gate, up, down, embed, head), and how many of it the model holds.
struct Matrix {
  std::string_view name;
  double in = 0;
  double out = 0;
  double count = 0;      ///< in the whole model; experts are counted one by one
  bool in_layer = true;  ///< false for embed and head
};
[[nodiscard]] std::vector<Matrix> matrices(const Model& model);

/// The row of that name; the error lists near names. Case and '_' against '-' do not matter.
[[nodiscard]] Result<Model> model_from_preset(std::string_view name);
[[nodiscard]] Result<Model> model_from_preset(std::string_view name, const Tables& tables);
/// From a Hugging Face config.json as it is. `path` prefixes the errors' fields.
[[nodiscard]] Result<Model> model_from_hf_config(const nlohmann::json& config,
                                                 const std::string& path = "spec.model.huggingFaceConfig");
[[nodiscard]] Result<Model> model_from_hf_config(const nlohmann::json& config, const std::string& path,
                                                 const Tables& tables);
/// From explicit numbers under spec.model.architecture.
[[nodiscard]] Result<Model> model_from_architecture(const api::ArchitectureSpec& spec,
                                                    const std::string& path = "spec.model.architecture");
/// Only a count: Fidelity::LowerBound. `count` in parameters, > 0.
[[nodiscard]] Result<Model> model_from_parameters(double count, const std::string& path = "spec.model.parameters");

/// Names of the built-in presets, sorted.
[[nodiscard]] std::vector<std::string> preset_names();

/// What makes a model unusable, as field errors under `path`; empty when it is sound.
[[nodiscard]] std::vector<FieldError> check_model(const Model& model, const std::string& path);

}  // namespace loadline::estimator
