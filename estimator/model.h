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
#include "estimator/block.h"

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

/// Mixture of experts; experts == 0 means a dense model.
struct Experts {
  std::int64_t experts = 0;             ///< routed experts per layer
  std::int64_t top_k = 0;               ///< experts each token visits
  std::int64_t expert_ffn = 0;          ///< width of one routed expert
  std::int64_t shared_ffn = 0;          ///< total width of the shared experts; 0 when there are none
  std::int64_t first_dense_layers = 0;  ///< leading layers with a dense MLP
  std::int64_t every = 1;               ///< one layer in `every` is a mixture layer
  std::int64_t layers = 0;              ///< mixture layers, where they follow no such rule; 0: they do
  bool router_bias = false;
  bool shared_gate = false;
};

/// A stack of transformer layers beside the main one. Its output enters the main stack: as
/// tokens of the sequence (towers, through a projector) or through cross attention (encoders).
struct Stack : Block {
  enum class Kind {
    Encoder,  ///< reads the text that the main stack answers (T5, BART)
    Vision,
    Audio,
  };
  Kind kind = Kind::Encoder;
  std::int64_t tokens = 0;  ///< of this stack per sequence; 0: an encoder's own sequence, a tower's number is not known
  double outside = 0;       ///< parameters around the layers: patches or convolutions, positions, norms, projector
};

/// A model: one main stack, its vocabulary and, where there are some, further stacks. The main
/// stack of a language model is its decoder, of BERT and ViT the encoder.
struct Model : Block {
  std::string name;    ///< "llama-3.1-8b", or what the user called it
  std::string family;  ///< "llama", "qwen2", ...: for people only
  Fidelity fidelity = Fidelity::Exact;

  std::int64_t vocab = 0;            ///< as in the checkpoint: padded; 0: no token is looked up (ViT)
  std::int64_t embedding_width = 0;  ///< where it is not hidden (ALBERT, OPT-350M); 0: it is
  bool lm_head = true;               ///< false: no logits over the vocabulary (BERT without its MLM head, ViT, CLIP)
  bool tied = false;                 ///< the head reuses the embedding matrix
  bool head_bias = false;
  bool embedding_norm = false;         ///< a norm right after the embedding (BLOOM, BERT)
  bool final_norm = true;              ///< false where the last layer's own norm is the last (BERT)
  bool text_only = false;              ///< the published model also has a vision tower, which is not counted
  bool low_precision_logits = false;   ///< the modelling code never raises logits to fp32
  bool cross_attention = false;        ///< every layer also attends to the output of stacks[0]
  std::int64_t learned_positions = 0;  ///< rows of a trained position table; 0 for rotary
  std::int64_t max_positions = 0;      ///< longest sequence the model is made for; 0 unknown
  std::int64_t tokens = 0;  ///< per sequence where the input fixes them (patches of an image); 0: it does not
  double outside = 0;       ///< parameters beside layers, tables and head: pooler, relative positions, patches

  Experts moe;
  std::vector<Stack> stacks;  ///< beside the main one

  double stated_parameters = 0;  ///< only with Fidelity::LowerBound
};

/// Counts of parameters. Doubles: exact below 2^53, and no input can overflow them.
struct ParameterCount {
  double embedding = 0;  ///< token and learned position tables
  double head = 0;       ///< output matrix and its bias; 0 when tied
  double final_norm = 0;
  double other = 0;        ///< further stacks, and Model::outside
  struct Layer {           ///< an average layer: the sum over layers divided by their number
    double attention = 0;  ///< attention, cross attention and recurrence
    double mlp = 0;        ///< dense MLP, shared experts and router
    double experts = 0;    ///< routed experts, all of them
    double norms = 0;
  } layer;
  double total = 0;
  double active = 0;   ///< used per token; equals total for dense models
  double linear = 0;   ///< in the matrices of the layers: what k-bit loading quantises and LoRA can adapt
  double experts = 0;  ///< routed experts over all layers: what expert parallelism divides
};

[[nodiscard]] ParameterCount count_parameters(const Model& model);
/// All of one further stack.
[[nodiscard]] double stack_parameters(const Stack& stack);

/// Layers with routed experts; 0 for a dense model.
[[nodiscard]] double mixture_layers(const Model& model);
/// Layers with a dense MLP.
[[nodiscard]] double dense_layers(const Model& model);
/// Tokens of a further stack per sequence of the main one; 0 when a tower's input has no known size.
[[nodiscard]] double stack_tokens(const Stack& stack, std::int64_t sequence);
/// "encoder", "vision tower" or "audio tower".
[[nodiscard]] std::string_view stack_name(Stack::Kind kind);

/// Input and output width of a weight matrix by the short name that adapter targets use
/// (q, k, v, o, gate, up, down, embed, head), and how many of it the model holds.
struct Matrix {
  std::string_view name;
  double in = 0;
  double out = 0;
  double count = 0;      ///< in the whole model; experts are counted one by one
  bool in_layer = true;  ///< false for embed and head
  bool in_main = true;   ///< false for those of a further stack
  bool routed = false;   ///< of experts that a router chooses among
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
