#include "estimator/block.h"

namespace loadline::estimator {
namespace {

double d(std::int64_t value) { return static_cast<double>(value); }
double d(bool flag) { return flag ? 1 : 0; }

/// Multi-head latent attention: low-rank queries and keys/values, each with its norm.
/// Source: deepseek-ai/DeepSeek-V3 inference/model.py, class MLA.
double latent_attention_parameters(const Block& b) {
  const LatentAttention& a = b.mla;
  const double qk = d(b.heads) * d(a.nope_dim + a.rope_dim);
  const double queries = a.q_rank > 0 ? d(a.q_rank) * (d(b.hidden) + qk) + d(a.q_rank) : d(b.hidden) * qk;
  const double keys_values =
      d(b.hidden) * d(a.kv_rank + a.rope_dim) + d(a.kv_rank) + d(a.kv_rank) * d(b.heads) * d(a.nope_dim + a.value_dim);
  return queries + keys_values + d(b.heads) * d(a.value_dim) * d(b.hidden);
}

/// Channels that pass the short convolution.
double convolved(const Block& b) {
  const Recurrence& r = b.recurrence;
  switch (r.kind) {
    case Mixing::Mamba1: return d(r.inner);
    case Mixing::Mamba2: return d(r.inner) + 2 * d(r.groups) * d(r.state);
    case Mixing::DeltaNet: return 2 * d(r.keys) + d(r.inner);
    case Mixing::ShortConv: return d(b.hidden);
  }
  return 0;
}

}  // namespace

double norm_parameters(const Block& b) { return b.norm_weights ? d(b.hidden) * (1 + d(b.norm_bias)) : 0; }

double attention_parameters(const Block& b) {
  if (b.mla.kv_rank > 0) return latent_attention_parameters(b);
  const double out = d(b.heads) * d(b.head_dim);
  const double q = out * (1 + d(b.gated_attention));
  const double kv = d(b.kv_heads) * d(b.head_dim);
  double count = d(b.hidden) * (q + 2 * kv) + out * d(b.hidden);
  count += d(b.qkv_bias) * (q + 2 * kv - d(b.unbiased_keys) * kv) + d(b.output_bias) * d(b.hidden);
  count += d(b.attention_sinks) * d(b.heads);
  if (b.qk_norm == QkNorm::PerHead) count += 2 * d(b.head_dim);
  if (b.qk_norm == QkNorm::FullWidth) count += out + kv;
  return count;
}

double recurrence_projection(const Block& b) {
  const Recurrence& r = b.recurrence;
  switch (r.kind) {
    case Mixing::Mamba1: return 2 * d(r.inner);
    case Mixing::Mamba2: return 2 * d(r.inner) + 2 * d(r.groups) * d(r.state) + d(r.heads);
    case Mixing::DeltaNet: return 2 * d(r.keys) + 2 * d(r.inner) + 2 * d(r.heads);
    case Mixing::ShortConv: return 3 * d(b.hidden);
  }
  return 0;
}

// Sources: state-spaces/mamba modules/mamba_simple.py and mamba2.py; transformers modeling_qwen3_next.py
// (Qwen3NextGatedDeltaNet), modeling_lfm2.py (Lfm2ShortConv).
double recurrence_parameters(const Block& b) {
  const Recurrence& r = b.recurrence;
  const double inner = d(r.inner);
  const double projection = d(b.hidden) * recurrence_projection(b);
  const double taps = convolved(b) * d(r.kernel);
  switch (r.kind) {
    case Mixing::Mamba1: {
      const double low_rank = d(r.rank) + 2 * d(r.state);
      const double time_step = d(r.rank) * inner + inner;
      const double states = inner * d(r.state) + inner;
      return projection + taps + inner + inner * low_rank + time_step + states + d(r.inner_norms) * low_rank +
             inner * d(b.hidden);
    }
    case Mixing::Mamba2: return projection + taps + convolved(b) + 3 * d(r.heads) + inner + inner * d(b.hidden);
    case Mixing::DeltaNet: {
      const double value_dim = r.heads > 0 ? inner / d(r.heads) : 0;
      return projection + taps + 2 * d(r.heads) + value_dim + inner * d(b.hidden);
    }
    case Mixing::ShortConv: return projection + taps + d(b.hidden) * d(b.hidden);
  }
  return 0;
}

double mlp_parameters(const Block& b, double width) {
  const double matrices = d(b.mlp_matrices);
  return matrices * d(b.hidden) * width + d(b.mlp_bias) * ((matrices - 1) * width + d(b.hidden));
}

double stack_layer_parameters(const Block& b) {
  const double layer =
      attention_parameters(b) + mlp_parameters(b, d(b.ffn)) + d(b.norms_per_layer) * norm_parameters(b);
  return (b.shared_layers ? 1 : d(b.layers)) * layer;
}

}  // namespace loadline::estimator
