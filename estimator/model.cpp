#include "estimator/model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "api/training_job.h"
#include "base/saturating.h"
#include "base/text.h"

namespace loadline::estimator {
namespace {

double d(std::int64_t value) { return static_cast<double>(value); }
double d(bool flag) { return flag ? 1 : 0; }

/// Attention, cross attention and recurrence of all layers.
double mixing_parameters(const Model& m) {
  double count = m.attention_layers() * attention_parameters(m);
  if (m.recurrence.layers > 0) count += d(m.recurrence.layers) * recurrence_parameters(m);
  if (m.cross_attention) count += d(m.layers) * attention_parameters(m);
  return m.shared_layers && m.layers > 0 ? count / d(m.layers) : count;
}

double embedding_width(const Model& m) { return d(m.embedding_width > 0 ? m.embedding_width : m.hidden); }

using Matrices = std::vector<Matrix>;

/// The projections of one attention, as often as `count` says.
void add_attention(const Block& b, double count, Matrices& out) {
  if (count <= 0) return;
  const double hidden = d(b.hidden);
  const double heads = d(b.heads);
  if (b.mla.kv_rank > 0) {
    const LatentAttention& a = b.mla;
    const double qk = heads * d(a.nope_dim + a.rope_dim);
    if (a.q_rank > 0) {
      out.push_back({"q", hidden, d(a.q_rank), count});
      out.push_back({"q", d(a.q_rank), qk, count});
    } else {
      out.push_back({"q", hidden, qk, count});
    }
    out.push_back({"k", hidden, d(a.kv_rank + a.rope_dim), count});
    out.push_back({"v", d(a.kv_rank), heads * d(a.nope_dim + a.value_dim), count});
    out.push_back({"o", heads * d(a.value_dim), hidden, count});
    return;
  }
  const double kv = d(b.kv_heads) * d(b.head_dim);
  out.push_back({"q", hidden, heads * d(b.head_dim) * (1 + d(b.gated_attention)), count});
  out.push_back({"k", hidden, kv, count});
  out.push_back({"v", hidden, kv, count});
  out.push_back({"o", heads * d(b.head_dim), hidden, count});
}

void add_recurrence(const Block& b, Matrices& out) {
  if (b.recurrence.layers <= 0) return;
  const double layers = d(b.recurrence.layers);
  const double inner = d(b.recurrence.kind == Mixing::ShortConv ? b.hidden : b.recurrence.inner);
  out.push_back({"in", d(b.hidden), recurrence_projection(b), layers});
  out.push_back({"out", inner, d(b.hidden), layers});
}

void add_mlp(const Block& b, double width, double count, Matrices& out) {
  if (width <= 0 || count <= 0) return;
  if (b.mlp_matrices == 3) out.push_back({"gate", d(b.hidden), width, count});
  out.push_back({"up", d(b.hidden), width, count});
  out.push_back({"down", width, d(b.hidden), count});
}

}  // namespace

double mixture_layers(const Model& m) {
  if (m.moe.experts <= 0) return 0;
  if (m.moe.layers > 0) return d(m.moe.layers);
  const std::int64_t candidates = m.layers > m.moe.first_dense_layers ? m.layers - m.moe.first_dense_layers : 0;
  return d(candidates / (m.moe.every > 0 ? m.moe.every : 1));
}

double dense_layers(const Model& m) { return std::max(0.0, d(m.layers - m.mlp_free_layers) - mixture_layers(m)); }

double stack_tokens(const Stack& stack, std::int64_t sequence) {
  return d(stack.tokens == 0 && stack.kind == Stack::Kind::Encoder ? sequence : stack.tokens);
}

std::string_view stack_name(Stack::Kind kind) {
  static constexpr std::array<std::string_view, 3> kNames{"encoder", "vision tower", "audio tower"};
  return kNames[static_cast<std::size_t>(kind)];
}

double stack_parameters(const Stack& stack) { return stack_layer_parameters(stack) + stack.outside; }

ParameterCount count_parameters(const Model& m) {
  ParameterCount p;
  if (m.fidelity == Fidelity::LowerBound) {
    p.total = p.active = p.linear = m.stated_parameters;
    return p;
  }
  const double mixture = mixture_layers(m);
  const double distinct = m.shared_layers ? 1 : d(m.layers);
  const double dense = (m.shared_layers ? 1 : dense_layers(m)) * mlp_parameters(m, d(m.ffn));
  const double routed = mixture * d(m.moe.experts) * mlp_parameters(m, d(m.moe.expert_ffn));
  double beside_experts = 0;  // router and shared experts of one mixture layer
  if (mixture > 0) {
    beside_experts = d(m.hidden) * d(m.moe.experts) + d(m.moe.router_bias) * d(m.moe.experts);
    if (m.moe.shared_ffn > 0) beside_experts += mlp_parameters(m, d(m.moe.shared_ffn));
    beside_experts += d(m.moe.shared_gate) * d(m.hidden);
  }
  const double mixing = mixing_parameters(m);
  const double norms = distinct * d(m.norms_per_layer) * norm_parameters(m);
  const double layers = m.layers > 0 ? d(m.layers) : 1;
  p.layer.attention = mixing / layers;
  p.layer.mlp = (dense + mixture * beside_experts) / layers;
  p.layer.experts = routed / layers;
  p.layer.norms = norms / layers;

  p.embedding = d(m.vocab) * embedding_width(m) + d(m.learned_positions) * d(m.hidden);
  if (m.lm_head) p.head = (m.tied ? 0 : d(m.vocab) * embedding_width(m)) + d(m.head_bias) * d(m.vocab);
  p.final_norm = norm_parameters(m) * (d(m.final_norm) + d(m.embedding_norm));
  p.experts = routed;
  p.other = m.outside;
  for (const Stack& stack : m.stacks) p.other += stack_parameters(stack);
  p.total = p.embedding + p.head + p.final_norm + p.other + mixing + norms + dense + mixture * beside_experts + routed;
  p.active = p.total - routed;
  if (m.moe.experts > 0) p.active += routed / d(m.moe.experts) * d(m.moe.top_k);
  p.linear = 0;
  for (const Matrix& matrix : matrices(m)) {
    if (matrix.in_layer) p.linear += matrix.count * matrix.in * matrix.out;
  }
  return p;
}

Matrices matrices(const Model& m) {
  Matrices out;
  if (m.fidelity == Fidelity::LowerBound) return out;
  const double distinct = m.shared_layers ? 1 : d(m.layers);
  const double mixture = mixture_layers(m);
  add_attention(m, m.shared_layers ? 1 : m.attention_layers(), out);
  if (m.cross_attention) add_attention(m, distinct, out);
  add_recurrence(m, out);
  add_mlp(m, d(m.ffn), m.shared_layers ? 1 : dense_layers(m), out);
  const std::size_t beside = out.size();
  add_mlp(m, d(m.moe.expert_ffn), mixture * d(m.moe.experts), out);
  for (std::size_t i = beside; i < out.size(); ++i) out[i].routed = true;
  add_mlp(m, d(m.moe.shared_ffn), mixture, out);
  for (const Stack& stack : m.stacks) {
    // Adapters belong to the language: towers stay frozen and unquantised beside them.
    if (stack.kind != Stack::Kind::Encoder) continue;
    const std::size_t main = out.size();
    add_attention(stack, d(stack.layers), out);
    add_mlp(stack, d(stack.ffn), d(stack.layers), out);
    for (std::size_t i = main; i < out.size(); ++i) out[i].in_main = false;
  }
  out.push_back({"embed", d(m.vocab), embedding_width(m), 1, false});
  if (m.lm_head) out.push_back({"head", embedding_width(m), d(m.vocab), 1, false});
  return out;
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
