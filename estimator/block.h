// The shape of one transformer layer, as far as counting needs it. A stack repeats it: the
// decoder of a language model, the encoder before it, a vision tower.
//
// Thread-safety: plain values, pure functions, no allocation.
// Errors: none; check_model() in estimator/model.h says what is unsound.
#pragma once

#include <cstdint>

namespace loadline::estimator {

/// Weights of the normalisation of queries and keys.
enum class QkNorm {
  None,
  PerHead,    ///< one vector of head size each for queries and keys (Qwen3, Gemma 3)
  FullWidth,  ///< one vector over all heads (OLMo 2)
};

/// Multi-head latent attention; kv_rank == 0 means ordinary attention.
struct LatentAttention {
  std::int64_t q_rank = 0;  ///< 0: queries are projected directly
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
};

/// How a layer mixes tokens without attention.
enum class Mixing {
  Mamba1,     ///< selective state space (Mamba, Jamba, FalconMamba)
  Mamba2,     ///< state space with heads (Mamba 2, Bamba, Nemotron-H, Granite 4)
  DeltaNet,   ///< gated linear attention (Qwen3-Next)
  ShortConv,  ///< gated short convolution (LFM2)
};

/// The layers of a stack that mix tokens by recurrence; layers == 0: there are none.
struct Recurrence {
  Mixing kind = Mixing::Mamba1;
  std::int64_t layers = 0;
  std::int64_t inner = 0;    ///< width that is mixed: Mamba's expanded width, DeltaNet's values
  std::int64_t keys = 0;     ///< DeltaNet: width of all key heads
  std::int64_t state = 0;    ///< Mamba: states per channel
  std::int64_t kernel = 4;   ///< taps of the short convolution
  std::int64_t rank = 0;     ///< Mamba 1: rank of the time step
  std::int64_t heads = 0;    ///< Mamba 2: heads; DeltaNet: value heads
  std::int64_t groups = 1;   ///< Mamba 2: groups that share their inputs' projections
  bool inner_norms = false;  ///< Mamba 1: norms of time step and states (Jamba)
};

/// All sizes are counts of elements.
struct Block {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;           ///< width of the dense MLP
  std::int64_t mlp_matrices = 3;  ///< 3 gated, 2 plain

  bool qkv_bias = false;
  bool unbiased_keys = false;  ///< with qkv_bias: keys have none (Whisper)
  bool output_bias = false;
  bool mlp_bias = false;
  bool norm_bias = false;        ///< LayerNorm with bias; false for RMSNorm
  bool norm_weights = true;      ///< false when norms have no parameters (OLMo)
  bool gated_attention = false;  ///< queries come with a gate as wide as they are (Qwen3-Next)
  bool attention_sinks = false;
  bool parallel_block = false;  ///< attention and MLP read the same input
  bool shared_layers = false;   ///< every layer has the same weights (ALBERT)
  QkNorm qk_norm = QkNorm::None;
  std::int64_t norms_per_layer = 2;
  std::int64_t sliding_window = 0;  ///< 0: every layer sees the whole sequence

  std::int64_t attention_free_layers = 0;  ///< layers that have no attention
  std::int64_t mlp_free_layers = 0;        ///< layers that have neither an MLP nor experts
  Recurrence recurrence;
  LatentAttention mla;

  [[nodiscard]] double attention_layers() const { return static_cast<double>(layers - attention_free_layers); }
};

/// Parameters of one norm: weight, and bias for LayerNorm.
[[nodiscard]] double norm_parameters(const Block& block);
/// Of the attention of one layer that has it, its q/k norms included.
[[nodiscard]] double attention_parameters(const Block& block);
/// Of the recurrence of one layer that has it.
[[nodiscard]] double recurrence_parameters(const Block& block);
/// Of one MLP of that width.
[[nodiscard]] double mlp_parameters(const Block& block, double width);
/// Of all layers of a stack without experts, embeddings and final norm left out.
[[nodiscard]] double stack_layer_parameters(const Block& block);

/// Width of everything that one layer's recurrence projects its input to.
[[nodiscard]] double recurrence_projection(const Block& block);

}  // namespace loadline::estimator
