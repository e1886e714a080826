// The facts behind an estimate, as rows: models, framework recipes, optimizers. Compiled in
// from estimator/data/*.yaml, each row with its source, and replaceable row by row by the
// text of a mounted file.
//
// Thread-safety: immutable after construction; builtin() is made once, on first use.
// Ownership: everything is held by value.
// Errors: a bad override names the file's key path; the built-in tables are checked by tests.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/enums.h"
#include "base/result.h"
#include "estimator/model.h"

namespace loadline::estimator {

using api::Loss;
using api::Precision;
using api::Quantization;
using api::Sharding;
inline constexpr std::size_t kPrecisions = 5;
inline constexpr std::size_t kLosses = 4;

/// A model of the table, with what was published about it.
struct ModelRow {
  Model model;
  std::vector<std::string> also;  ///< other names of the same architecture, the hub id among them
  double total = 0;               ///< published count; 0 when none was found
  double about = 0;               ///< published count that the source rounds, or counts a little differently
  double active = 0;
  std::string source;
};

/// What surrounds the layers of an image tower.
struct TowerTraits {
  bool patch_bias = true;
  bool class_token = false;
  bool positions = true;    ///< a trained table of positions
  std::int64_t norms = 1;   ///< before and after the layers
  std::int64_t frames = 1;  ///< that one patch spans
  std::int64_t image = 0;   ///< side of an image in pixels, where the config leaves it out; 0: any size
  std::int64_t patch = 0;   ///< side of a patch, likewise
  std::int64_t tokens = 0;  ///< assumed per sequence where images have any size
};

/// What turns a tower's output into tokens of the main stack: a chain of matrices, from each
/// width to the next, and norms.
struct Projector {
  enum class Width {
    Tower,
    Merged,  ///< of neighbouring patches put together: the tower's times merge squared
    Output,  ///< stated by the tower's config
    Text,
  };
  std::vector<Width> chain;
  bool biases = false;
  Width normed = Width::Tower;  ///< the width of the norms
  std::int64_t vectors = 0;     ///< as wide as `normed`: weights, and biases of norms
  std::int64_t merge = 1;       ///< patches along a side that become one token, where the config leaves it out
};

/// How a Hugging Face model_type is read: what its config leaves unsaid.
struct FamilyRow {
  std::string type;                           ///< model_type
  Model defaults;                             ///< traits; and sizes, for what a config inside another leaves out
  bool trained_positions = false;             ///< a position table of as many rows as the config's positions...
  std::int64_t extra_positions = 0;           ///< ...and these (OPT: 2)
  bool token_types = false;                   ///< a table of token types
  bool pooler = false;                        ///< a matrix after the last layer, without a language head
  bool relative_positions = false;            ///< a bias per head and bucket, once in each stack (T5)
  bool multi_query = false;                   ///< one key/value head unless the config says otherwise
  bool qkv_bias_only = false;                 ///< attention_bias leaves the output projection out
  QkNorm optional_qk_norm = QkNorm::PerHead;  ///< what use_qk_norm turns on
  bool halved_ffn = false;                    ///< intermediate_size counts gate and up together (Qwen 1)
  bool shared_expert = false;                 ///< one shared expert, which the config does not count
  bool encoder = false;                       ///< an encoder stands before the decoder
  bool audio_stem = false;                    ///< it reads a spectrogram through two convolutions
  bool side_by_side = false;                  ///< attention and recurrence are in the same layers
  bool mlp_free = false;                      ///< no layer has an MLP
  bool recurrent = false;                     ///< layers without attention mix tokens by defaults.recurrence
  bool dual = false;                          ///< text and images meet in a space of their own (CLIP)
  std::int64_t vectors = 0;                   ///< hidden-size vectors beside the layers
  std::string text;                           ///< model_type of the text part, where the config does not say
  std::string vision;                         ///< the same of the vision tower; empty: there is none
  std::optional<TowerTraits> tower;           ///< for the type of a tower
  Projector projector;
  std::string source;
};

/// Bytes a framework keeps per parameter or element at one precision.
struct StateBytes {
  double weights = 0;       ///< stored copy of a trained weight
  double gradients = 0;     ///< accumulated gradient
  double master = 0;        ///< fp32 copy beside low-precision weights
  double moment = 0;        ///< one optimizer moment (AdamW has two)
  double step = 0;          ///< held only during the optimizer step (foreach temporary, fp32 gradients)
  double compute = 0;       ///< element of an activation and of a gathered weight
  double residual = 0;      ///< element of the stream between layers: what full recompute keeps
  double compute_copy = 0;  ///< low-precision copies of the weights kept from forward to backward
};

/// What one framework really keeps. Every number has a physical meaning, said at the field.
struct Recipe {
  std::string name;
  std::string source;
  std::array<StateBytes, kPrecisions> states;  ///< by Precision
  std::array<double, kLosses> logits{};        ///< bytes per token and vocabulary element at the loss, by Loss
  double norm_copies = 3;         ///< input-size tensors an RMSNorm keeps besides its output (fp32 upcast: 3; fused: 1)
  double block_copies = 3.5;      ///< further hidden-size tensors a layer keeps (residuals, projections)
  double mlp_copies = 4;          ///< MLP-width tensors a gated MLP keeps (gate, activation, up, product)
  double plain_mlp_copies = 2;    ///< the same for a plain MLP
  double score_bytes = 6;         ///< per head, query and key with eager attention (softmax and its cast)
  double selective_share = 0.42;  ///< of a layer's tensors, what selective recompute keeps
  double expert_imbalance = 1.25;  ///< tokens of the fullest expert rank over the mean
  double gathered_at_loss = 1;     ///< layers whole at the loss under ZeRO-3
  double gathered_units = 2;       ///< layers whole at once under ZeRO-3 in the backward: current and prefetched
  double reduce_bytes = 4;         ///< per element of a gradient waiting for its reduce-scatter
  double bucket_bytes = 0;         ///< fixed communication buckets per GPU when states are sharded
  double live_parameters = 0;      ///< ZeRO-3: parameters that may stay gathered, a count
  bool root_gathered = true;       ///< ZeRO-3: embedding and head stay whole from forward to backward
  bool expert_group_shares_batch = false;  ///< as tensor-parallel ranks do, holding all but the experts whole
  bool vocabulary_parallel =
      true;              ///< tensor parallel splits embedding and head; else they are sharded and gathered whole
  bool ddp_copy = true;  ///< DDP keeps gradients a second time, in buckets
  bool gradients_persist = true;   ///< gradients are allocated all the time, not only from backward to step
  bool sequence_parallel = false;  ///< tensor parallel also splits what norms and residuals keep
  bool flat_gradients = false;     ///< ZeRO-3 shards flat parameters: all gradients, of frozen weights too, stay whole
  bool held_input_gradients = false;   ///< ZeRO-3 with a frozen base holds every layer's input gradient to the end
  bool sharded_low_precision = false;  ///< ZeRO-3 runs all of a layer in compute precision, the residual stream too
  bool kbit_upcast = false;            ///< k-bit loading makes embedding, head, norms and the residual stream fp32
  bool offload_gradients = false;      ///< optimizer offload moves gradients to the host as well
  std::array<double, 3> quantised_bytes{0.5625, 0.516, 0.52};  ///< per 4-bit weight, scales included, by Quantization
  Quantization quantization = Quantization::Nf4;               ///< what 4-bit loading does unless told otherwise
  double adapter_bytes = 4;                                    ///< per adapter weight, its gradient and each moment
  double host_slack = 1.5;                                     ///< host RAM for offload over the bytes of the states

  double context_gib = 0.9;             ///< CUDA context and kernels
  double communicator_gib = 1.2;        ///< NCCL with one communicator
  double lone_communicator_gib = 0;     ///< the same on one GPU, where the launcher makes a group of one
  double more_communicators_gib = 0.3;  ///< each further process group
  double fragmentation_share = 0.04;    ///< of what is allocated and freed every step
  double fragmentation_gib = 0.5;       ///< at least
  // Without expandable segments the allocator keeps blocks that later requests do not fit into.
  double cached_share = 0.1;          ///< of what comes and goes, on one card
  double cached_share_sharded = 0.2;  ///< the same where layers are gathered
  double cached_logits = 1.25;        ///< fp32 logits of one micro-batch
  double cached_step = 0.95;          ///< gradients and step temporary that find no room in the cache...
  double cached_reuse = 0.6;          ///< ...of which this share of the logits is such room

  std::vector<Sharding> shardings;  ///< what may be chosen when the user fixes none
  bool model_parallel = false;      ///< tensor, pipeline, context and expert parallel may be chosen
};

/// An optimizer's row.
struct OptimizerRow {
  std::string name;
  std::string source;
  std::string label;          ///< for people: "Adam", "Lion"
  double moments = 2;         ///< of StateBytes::moment, per parameter
  double fixed_bytes = 0;     ///< per parameter whatever the precision (8-bit states and their scales)
  double vector_moments = 2;  ///< the same for embeddings, head and norms (Muon keeps Adam there)
  double vector_fixed = 0;
  bool step_temporary = true;  ///< its step makes the temporary of StateBytes::step
  double matrix_bytes = 0;     ///< per element of the largest matrix: its step works on one whole matrix at a time
  bool paged = false;          ///< states lie in unified memory: they leave the card when it is full
};

/// How far estimates of one class of job are from measured runs.
struct AccuracyRow {
  std::string name;       ///< the class: "full-1gpu", "qlora-sharded", "tp-pp-cp", "moe", ...
  double within = 0;      ///< nine of ten runs are within so many percent
  std::int64_t runs = 0;  ///< compared
};

struct Tables {
  std::vector<ModelRow> models;
  std::vector<FamilyRow> families;
  std::vector<Recipe> recipes;
  std::vector<OptimizerRow> optimizers;
  std::vector<AccuracyRow> accuracy;

  /// The tables compiled in.
  [[nodiscard]] static const Tables& builtin();
  /// These tables with the rows of `yaml` (keys models, families, recipes, optimizers, accuracy) replacing rows
  /// of the same name, or added.
  [[nodiscard]] Result<Tables> with_overrides(std::string_view yaml) const;

  /// The row of that name; null when there is none. Model names match in any case, with '_' as '-'.
  [[nodiscard]] const ModelRow* model(std::string_view name) const;
  [[nodiscard]] const FamilyRow* family(std::string_view type) const;
  [[nodiscard]] const Recipe* recipe(std::string_view name) const;
  [[nodiscard]] const OptimizerRow* optimizer(std::string_view name) const;
  [[nodiscard]] const AccuracyRow* accuracy_of(std::string_view job_class) const;
};

}  // namespace loadline::estimator
