#include "estimator/model.h"

#include <array>
#include <cmath>

#include "api/training_job.h"
#include "base/saturating.h"
#include "base/text.h"

namespace loadline::estimator {
namespace {

double d(std::int64_t value) { return static_cast<double>(value); }
double d(bool flag) { return flag ? 1 : 0; }

/// Parameters of one norm: weight, and bias for LayerNorm.
double norm_parameters(const Model& m) { return m.norm_weights ? d(m.hidden) * (1 + d(m.norm_bias)) : 0; }

/// Multi-head latent attention: low-rank queries and keys/values, each with its norm.
double latent_attention_parameters(const Model& m) {
  const LatentAttention& a = m.mla;
  const double qk = d(m.heads) * d(a.nope_dim + a.rope_dim);
  const double queries = a.q_rank > 0 ? d(a.q_rank) * (d(m.hidden) + qk) + d(a.q_rank) : d(m.hidden) * qk;
  const double keys_values =
      d(m.hidden) * d(a.kv_rank + a.rope_dim) + d(a.kv_rank) + d(a.kv_rank) * d(m.heads) * d(a.nope_dim + a.value_dim);
  return queries + keys_values + d(m.heads) * d(a.value_dim) * d(m.hidden);
}

double attention_parameters(const Model& m) {
  if (m.mla.kv_rank > 0) return latent_attention_parameters(m);
  const double q = d(m.heads) * d(m.head_dim);
  const double kv = d(m.kv_heads) * d(m.head_dim);
  double count = d(m.hidden) * (q + 2 * kv) + q * d(m.hidden);
  count += d(m.qkv_bias) * (q + 2 * kv) + d(m.output_bias) * d(m.hidden) + d(m.attention_sinks) * d(m.heads);
  if (m.qk_norm == QkNorm::PerHead) count += 2 * d(m.head_dim);
  if (m.qk_norm == QkNorm::FullWidth) count += q + kv;
  return count;
}

double mlp_parameters(const Model& m, double width) {
  const double matrices = d(m.mlp_matrices);
  return matrices * d(m.hidden) * width + d(m.mlp_bias) * ((matrices - 1) * width + d(m.hidden));
}

}  // namespace

double mixture_layers(const Model& m) {
  if (m.moe.experts <= 0) return 0;
  const std::int64_t candidates = m.layers > m.moe.first_dense_layers ? m.layers - m.moe.first_dense_layers : 0;
  return d(candidates / (m.moe.every > 0 ? m.moe.every : 1));
}

ParameterCount count_parameters(const Model& m) {
  ParameterCount p;
  if (m.fidelity == Fidelity::LowerBound) {
    p.total = p.active = p.linear = m.stated_parameters;
    return p;
  }
  const double mixture = mixture_layers(m);
  const double dense = d(m.layers) - mixture;
  const double routed = mixture * d(m.moe.experts) * mlp_parameters(m, d(m.moe.expert_ffn));
  double beside_experts = 0;  // router and shared experts of one mixture layer
  if (mixture > 0) {
    beside_experts = d(m.hidden) * d(m.moe.experts) + d(m.moe.router_bias) * d(m.moe.experts);
    if (m.moe.shared_ffn > 0) beside_experts += mlp_parameters(m, d(m.moe.shared_ffn));
    beside_experts += d(m.moe.shared_gate) * d(m.hidden);
  }
  const double layers = m.layers > 0 ? d(m.layers) : 1;
  p.layer.attention = attention_parameters(m);
  p.layer.mlp = (dense * mlp_parameters(m, d(m.ffn)) + mixture * beside_experts) / layers;
  p.layer.experts = routed / layers;
  p.layer.norms = d(m.norms_per_layer) * norm_parameters(m);

  p.embedding = d(m.vocab) * d(m.hidden) + d(m.learned_positions) * d(m.hidden);
  p.head = (m.tied ? 0 : d(m.vocab) * d(m.hidden)) + d(m.head_bias) * d(m.vocab);
  p.final_norm = norm_parameters(m) * (1 + d(m.embedding_norm));
  p.experts = routed;
  const double body = d(m.layers) * (p.layer.attention + p.layer.norms) + dense * mlp_parameters(m, d(m.ffn)) +
                      mixture * beside_experts;
  p.total = p.embedding + p.head + p.final_norm + body + routed;
  p.active = p.total - routed;
  if (m.moe.experts > 0) p.active += routed / d(m.moe.experts) * d(m.moe.top_k);
  p.linear = 0;
  for (const Matrix& matrix : matrices(m)) {
    if (matrix.in_layer) p.linear += matrix.count * matrix.in * matrix.out;
  }
  return p;
}

std::vector<Matrix> matrices(const Model& m) {
  std::vector<Matrix> out;
  if (m.fidelity == Fidelity::LowerBound) return out;
  const double layers = d(m.layers);
  const double hidden = d(m.hidden);
  if (m.mla.kv_rank > 0) {
    const LatentAttention& a = m.mla;
    const double qk = d(m.heads) * d(a.nope_dim + a.rope_dim);
    if (a.q_rank > 0) {
      out.push_back({"q", hidden, d(a.q_rank), layers});
      out.push_back({"q", d(a.q_rank), qk, layers});
    } else {
      out.push_back({"q", hidden, qk, layers});
    }
    out.push_back({"k", hidden, d(a.kv_rank + a.rope_dim), layers});
    out.push_back({"v", d(a.kv_rank), d(m.heads) * d(a.nope_dim + a.value_dim), layers});
    out.push_back({"o", d(m.heads) * d(a.value_dim), hidden, layers});
  } else {
    const double q = d(m.heads) * d(m.head_dim);
    const double kv = d(m.kv_heads) * d(m.head_dim);
    out.push_back({"q", hidden, q, layers});
    out.push_back({"k", hidden, kv, layers});
    out.push_back({"v", hidden, kv, layers});
    out.push_back({"o", q, hidden, layers});
  }
  const double mixture = mixture_layers(m);
  const auto add_mlp = [&](double width, double count) {
    if (width <= 0 || count <= 0) return;
    if (m.mlp_matrices == 3) out.push_back({"gate", hidden, width, count});
    out.push_back({"up", hidden, width, count});
    out.push_back({"down", width, hidden, count});
  };
  add_mlp(d(m.ffn), layers - mixture);
  add_mlp(d(m.moe.expert_ffn), mixture * d(m.moe.experts));
  add_mlp(d(m.moe.shared_ffn), mixture);
  out.push_back({"embed", d(m.vocab), hidden, 1, false});
  out.push_back({"head", hidden, d(m.vocab), 1, false});
  return out;
}

std::vector<FieldError> check_model(const Model& m, const std::string& path) {
  std::vector<FieldError> errors;
  const auto refuse = [&](const char* field, std::int64_t value, std::string detail) {
    errors.push_back({FieldError::Type::Invalid, path + "." + field, std::to_string(value), std::move(detail)});
  };
  if (m.fidelity == Fidelity::LowerBound) return errors;
  struct Bound {
    const char* field;
    std::int64_t value;
    std::int64_t least;
    std::int64_t most;
  };
  // Ten times the largest published value of each, or more: beyond that it is a slip of the keyboard.
  const std::array<Bound, 11> bounds{{{"layers", m.layers, 1, 10'000},
                                      {"hidden", m.hidden, 1, 1'000'000},
                                      {"heads", m.heads, 1, 10'000},
                                      {"kvHeads", m.kv_heads, 1, 10'000},
                                      {"headDim", m.head_dim, 1, 100'000},
                                      {"ffn", m.ffn, 1, 10'000'000},
                                      {"vocab", m.vocab, 1, 100'000'000},
                                      {"maxPositions", m.learned_positions, 0, 1'000'000'000},
                                      {"experts", m.moe.experts, 0, 100'000},
                                      {"expertFfn", m.moe.expert_ffn, 0, 10'000'000},
                                      {"sharedExperts", m.moe.shared_ffn, 0, 100'000'000}}};
  for (const Bound& b : bounds) {
    if (b.value >= b.least && b.value <= b.most) continue;
    refuse(b.field, b.value, "must be between " + std::to_string(b.least) + " and " + std::to_string(b.most));
  }
  if (m.heads > 0 && m.kv_heads > 0 && m.heads % m.kv_heads != 0) {
    refuse("kvHeads", m.kv_heads, "must divide heads (" + std::to_string(m.heads) + ")");
  }
  if (m.moe.experts > 0 && (m.moe.top_k < 1 || m.moe.top_k > m.moe.experts)) {
    refuse("topK", m.moe.top_k, "must be between 1 and experts (" + std::to_string(m.moe.experts) + ")");
  }
  if (m.moe.experts > 0 && m.moe.expert_ffn < 1) refuse("expertFfn", m.moe.expert_ffn, "must be at least 1");
  if (m.moe.first_dense_layers < 0 || m.moe.first_dense_layers > m.layers) {
    refuse("firstDenseLayers", m.moe.first_dense_layers, "must be between 0 and layers");
  }
  return errors;
}

Result<Model> model_from_architecture(const api::ArchitectureSpec& spec, const std::string& path) {
  std::vector<FieldError> errors;
  const auto required = [&](const std::optional<std::int64_t>& value, const char* field) {
    if (!value) errors.push_back({FieldError::Type::Required, path + "." + field, "", "the size cannot be guessed"});
    return value.value_or(1);
  };
  Model m;
  m.name = "architecture";
  m.family = "explicit";
  m.layers = required(spec.layers, "layers");
  m.hidden = required(spec.hidden, "hidden");
  m.heads = required(spec.heads, "heads");
  m.vocab = required(spec.vocab, "vocab");
  m.ffn = spec.experts && spec.expertFfn ? spec.ffn.value_or(*spec.expertFfn) : required(spec.ffn, "ffn");
  m.kv_heads = spec.kvHeads.value_or(m.heads);
  m.head_dim = spec.headDim.value_or(m.heads > 0 ? m.hidden / m.heads : 0);
  m.mlp_matrices = spec.gatedMlp.value_or(true) ? 3 : 2;
  m.tied = spec.tiedEmbeddings.value_or(false);
  m.qkv_bias = spec.attentionBias.value_or(false);
  m.mlp_bias = spec.mlpBias.value_or(false);
  m.qk_norm = spec.qkNorm.value_or(false) ? QkNorm::PerHead : QkNorm::None;
  m.learned_positions = spec.maxPositions.value_or(0);
  m.max_positions = m.learned_positions;
  m.moe.experts = spec.experts.value_or(0);
  if (m.moe.experts > 0) {
    m.moe.top_k = required(spec.topK, "topK");
    m.moe.expert_ffn = spec.expertFfn.value_or(m.ffn);
    m.moe.shared_ffn = sat_mul(spec.sharedExperts.value_or(0), m.moe.expert_ffn);
    m.moe.first_dense_layers = spec.firstDenseLayers.value_or(0);
  }
  if (errors.empty()) errors = check_model(m, path);
  if (!errors.empty()) return Error::invalid(std::move(errors));
  return m;
}

Result<Model> model_from_parameters(double count, const std::string& path) {
  if (!std::isfinite(count) || count < 1) {
    return Error::invalid({{FieldError::Type::Invalid, path, fixed(count, 0), "must be at least 1"}});
  }
  Model m;
  m.name = scientific(count) + " parameters";
  m.family = "unknown";
  m.fidelity = Fidelity::LowerBound;
  m.stated_parameters = count;
  return m;
}

}  // namespace loadline::estimator
