// Rows of data/models.yaml and data/families.yaml.
#include <algorithm>
#include <array>
#include <cstddef>

#include "estimator/table_row.h"

namespace loadline::estimator {
namespace {

/// The value of a word; `words` are in the order of the enum.
template <class E, std::size_t N>
void read_word(Row& row, const char* key, const std::array<const char*, N>& words, E& out) {
  std::string word;
  row.optional(key, word);
  if (word.empty()) return;
  std::string known;
  for (std::size_t i = 0; i < N; ++i) {
    if (word == words[i]) {
      out = static_cast<E>(i);
      return;
    }
    known += std::string(known.empty() ? "" : ", ") + words[i];
  }
  throw BadRow{row.where() + "." + key, "must be one of " + known};
}

constexpr std::array kQkNorms{"none", "head", "full"};

void read_block_traits(Row& row, Block& b) {
  row.optional("mlp_matrices", b.mlp_matrices);
  row.optional("qkv_bias", b.qkv_bias);
  row.optional("unbiased_keys", b.unbiased_keys);
  row.optional("output_bias", b.output_bias);
  row.optional("mlp_bias", b.mlp_bias);
  row.optional("norm_bias", b.norm_bias);
  row.optional("norm_weights", b.norm_weights);
  row.optional("norms_per_layer", b.norms_per_layer);
  row.optional("gated_attention", b.gated_attention);
  row.optional("attention_sinks", b.attention_sinks);
  row.optional("parallel_block", b.parallel_block);
  row.optional("shared_layers", b.shared_layers);
  row.optional("sliding_window", b.sliding_window);
  row.optional("attention_free_layers", b.attention_free_layers);
  row.optional("mlp_free_layers", b.mlp_free_layers);
  read_word(row, "qk_norm", kQkNorms, b.qk_norm);
}

void read_model_traits(const YAML::Node& node, const std::string& where, Model& m) {
  Row row(node, where);
  read_block_traits(row, m);
  row.optional("embedding_width", m.embedding_width);
  row.optional("lm_head", m.lm_head);
  row.optional("tied", m.tied);
  row.optional("head_bias", m.head_bias);
  row.optional("embedding_norm", m.embedding_norm);
  row.optional("low_precision_logits", m.low_precision_logits);
  row.optional("final_norm", m.final_norm);
  row.optional("cross_attention", m.cross_attention);
  row.optional("learned_positions", m.learned_positions);
  row.optional("max_positions", m.max_positions);
  row.optional("tokens", m.tokens);
  row.finish();
}

void read_experts(const YAML::Node& node, const std::string& where, Experts& e) {
  Row row(node, where);
  row.optional("experts", e.experts);
  row.optional("top_k", e.top_k);
  row.optional("expert_ffn", e.expert_ffn);
  row.optional("shared_ffn", e.shared_ffn);
  row.optional("first_dense_layers", e.first_dense_layers);
  row.optional("every", e.every);
  row.optional("layers", e.layers);
  row.optional("router_bias", e.router_bias);
  row.optional("shared_gate", e.shared_gate);
  row.finish();
}

void read_block_shape(Row& row, Block& b) {
  row.optional("layers", b.layers);
  row.optional("hidden", b.hidden);
  row.optional("heads", b.heads);
  row.optional("kv_heads", b.kv_heads);
  row.optional("head_dim", b.head_dim);
  row.optional("ffn", b.ffn);
}

void read_model_shape(const YAML::Node& node, const std::string& where, Model& m) {
  Row row(node, where);
  read_block_shape(row, m);
  row.optional("vocab", m.vocab);
  row.finish();
}

void read_latent(const YAML::Node& node, const std::string& where, LatentAttention& a) {
  Row row(node, where);
  row.optional("q_rank", a.q_rank);
  row.optional("kv_rank", a.kv_rank);
  row.optional("nope_dim", a.nope_dim);
  row.optional("rope_dim", a.rope_dim);
  row.optional("value_dim", a.value_dim);
  row.finish();
}

constexpr std::array kMixings{"mamba1", "mamba2", "delta_net", "short_conv"};

void read_recurrence(const YAML::Node& node, const std::string& where, Recurrence& r) {
  Row row(node, where);
  read_word(row, "kind", kMixings, r.kind);
  row.optional("layers", r.layers);
  row.optional("inner", r.inner);
  row.optional("keys", r.keys);
  row.optional("state", r.state);
  row.optional("kernel", r.kernel);
  row.optional("rank", r.rank);
  row.optional("heads", r.heads);
  row.optional("groups", r.groups);
  row.optional("inner_norms", r.inner_norms);
  row.finish();
}

/// Parameters around the layers: matrices as pairs of widths, their biases, and single vectors.
double read_outside(const YAML::Node& node, const std::string& where) {
  Row row(node, where);
  std::vector<std::vector<double>> widths;
  bool biases = false;
  double vectors = 0;
  row.optional("matrices", widths);
  row.optional("biases", biases);
  row.optional("vectors", vectors);
  row.finish();
  double count = vectors;
  for (const std::vector<double>& pair : widths) {
    if (pair.size() != 2) throw BadRow{where + ".matrices", "must be pairs of widths"};
    count += pair[0] * pair[1] + (biases ? pair[1] : 0);
  }
  return count;
}

Stack read_stack(const YAML::Node& node, const std::string& where) {
  Row row(node, where);
  Stack s;
  read_word(row, "kind", std::array{"encoder", "vision", "audio"}, s.kind);
  row.optional("tokens", s.tokens);
  Row shape(row.child("shape"), where + ".shape");
  read_block_shape(shape, s);
  shape.finish();
  Row traits(row.child("traits"), where + ".traits");
  read_block_traits(traits, s);
  traits.finish();
  s.outside = read_outside(row.child("outside"), where + ".outside");
  row.finish();
  return s;
}

TowerTraits read_tower(const YAML::Node& node, const std::string& where) {
  Row row(node, where);
  TowerTraits t;
  row.optional("patch_bias", t.patch_bias);
  row.optional("class_token", t.class_token);
  row.optional("positions", t.positions);
  row.optional("norms", t.norms);
  row.optional("frames", t.frames);
  row.optional("image", t.image);
  row.optional("patch", t.patch);
  row.optional("tokens", t.tokens);
  row.finish();
  return t;
}

void read_projector(const YAML::Node& node, const std::string& where, Projector& p) {
  static constexpr std::array kWidths{"tower", "merged", "output", "text"};
  Row row(node, where);
  std::vector<std::string> chain;
  row.optional("chain", chain);
  for (const std::string& width : chain) {
    const auto it = std::find(kWidths.begin(), kWidths.end(), width);
    if (it == kWidths.end()) throw BadRow{where + ".chain", "must be of tower, merged, output, text"};
    p.chain.push_back(static_cast<Projector::Width>(it - kWidths.begin()));
  }
  row.optional("biases", p.biases);
  read_word(row, "normed", kWidths, p.normed);
  row.optional("vectors", p.vectors);
  row.optional("merge", p.merge);
  row.finish();
}

}  // namespace

ModelRow model_row(const YAML::Node& node, const std::string& where) {
  Row row(node, where);
  ModelRow out;
  Model& m = out.model;
  m.name = row.required("name");
  m.family = row.required("family");
  out.source = row.required("source");
  row.optional("also", out.also);
  std::string hub;
  row.optional("hub", hub);
  if (!hub.empty()) out.also.push_back(hub);
  row.optional("total", out.total);
  row.optional("about", out.about);
  row.optional("active", out.active);
  row.optional("text_only", m.text_only);
  read_model_shape(row.child("shape"), where + ".shape", m);
  read_model_traits(row.child("traits"), where + ".traits", m);
  read_experts(row.child("experts"), where + ".experts", m.moe);
  read_latent(row.child("latent_attention"), where + ".latent_attention", m.mla);
  read_recurrence(row.child("recurrence"), where + ".recurrence", m.recurrence);
  m.outside = read_outside(row.child("outside"), where + ".outside");
  if (const YAML::Node stacks = row.child("stacks")) {
    if (!stacks.IsSequence()) throw BadRow{where + ".stacks", "must be a list"};
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      m.stacks.push_back(read_stack(stacks[i], where + ".stacks[" + std::to_string(i) + "]"));
    }
  }
  row.finish();
  const std::vector<FieldError> errors = check_model(m, where + ".shape");
  if (!errors.empty()) throw BadRow{errors.front().field, errors.front().detail};
  return out;
}

FamilyRow family_row(const YAML::Node& node, const std::string& where) {
  Row row(node, where);
  FamilyRow out;
  out.type = row.required("type");
  out.source = row.required("source");
  row.optional("trained_positions", out.trained_positions);
  row.optional("extra_positions", out.extra_positions);
  row.optional("token_types", out.token_types);
  row.optional("pooler", out.pooler);
  row.optional("relative_positions", out.relative_positions);
  row.optional("multi_query", out.multi_query);
  row.optional("qkv_bias_only", out.qkv_bias_only);
  row.optional("shared_expert", out.shared_expert);
  row.optional("encoder", out.encoder);
  row.optional("audio_stem", out.audio_stem);
  row.optional("side_by_side", out.side_by_side);
  row.optional("mlp_free", out.mlp_free);
  row.optional("text", out.text);
  row.optional("vision", out.vision);
  row.optional("dual", out.dual);
  row.optional("halved_ffn", out.halved_ffn);
  row.optional("vectors", out.vectors);
  read_word(row, "optional_qk_norm", kQkNorms, out.optional_qk_norm);
  const YAML::Node recurrence = row.child("recurrence");
  out.recurrent = recurrence.IsDefined();
  read_recurrence(recurrence, where + ".recurrence", out.defaults.recurrence);
  if (const YAML::Node tower = row.child("tower")) out.tower = read_tower(tower, where + ".tower");
  read_projector(row.child("projector"), where + ".projector", out.projector);
  read_model_shape(row.child("shape"), where + ".shape", out.defaults);
  read_model_traits(row.child("traits"), where + ".traits", out.defaults);
  read_experts(row.child("experts"), where + ".experts", out.defaults.moe);
  row.finish();
  return out;
}

}  // namespace loadline::estimator
