// Reading a Hugging Face config.json. The families' traits are data/families.yaml; here is
// only where each number is found, since the same size goes by several names.
#include <algorithm>
#include <array>

#include "base/saturating.h"
#include "base/text.h"
#include "estimator/hf_config.h"
#include "estimator/hf_parts.h"
#include "estimator/model.h"
#include "estimator/tables.h"

namespace loadline::estimator {
namespace {

Error not_supported(const std::string& path, const std::string& type, const std::string& why) {
  return Error::invalid({{FieldError::Type::NotSupported, path, type, "not supported yet: " + why}});
}

void read_heads(const HfConfig& in, const FamilyRow& family, const Model& otherwise, Model& m) {
  const std::optional<std::int64_t> decoder =
      family.encoder ? in.integer({"decoder_attention_heads"}) : std::optional<std::int64_t>();
  m.heads =
      decoder ? *decoder : in.required({"num_attention_heads", "n_head", "num_heads", "n_heads"}, otherwise.heads);
  // Falcon's second generation keeps several key/value heads and two norms in front of the parallel branches.
  const bool grouped = in.flag("new_decoder_architecture", false);
  if (grouped) m.norms_per_layer = 2;
  if (!grouped && in.flag("multi_query", family.multi_query)) {
    m.kv_heads = 1;
  } else {
    const std::int64_t usual = otherwise.kv_heads > 0 ? otherwise.kv_heads : m.heads;
    m.kv_heads =
        in.integer({"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"}).value_or(usual);
  }
  const std::int64_t usual = otherwise.head_dim > 0 ? otherwise.head_dim : m.heads > 0 ? m.hidden / m.heads : 0;
  m.head_dim = in.integer({"head_dim", "d_kv", "kv_channels", "attention_head_dim"}).value_or(usual);
}

void read_biases(const HfConfig& in, const FamilyRow& family, Model& m) {
  // Llama's attention_bias covers all four projections; families with built-in biases keep theirs.
  if (in.flag("attention_bias", false)) {
    m.qkv_bias = true;
    m.output_bias = m.output_bias || !family.qkv_bias_only;
  }
  if (in.flag("use_qkv_bias", false) || in.flag("add_qkv_bias", false)) m.qkv_bias = true;
  m.mlp_bias = in.flag("mlp_bias", m.mlp_bias);
  m.head_bias = in.flag("lm_head_bias", m.head_bias);
  if (in.flag("use_qk_norm", false)) m.qk_norm = family.optional_qk_norm;
}

void read_attention(const HfConfig& in, const FamilyRow& family, const Model& otherwise, Model& m) {
  read_heads(in, family, otherwise, m);
  read_biases(in, family, m);
  if (in.flag("use_sliding_window", true)) m.sliding_window = in.integer({"sliding_window"}).value_or(0);
  if (const auto kv_rank = in.integer({"kv_lora_rank"}); kv_rank && *kv_rank > 0) {
    m.mla.kv_rank = *kv_rank;
    m.mla.q_rank = in.integer({"q_lora_rank"}).value_or(0);
    m.mla.nope_dim = in.required({"qk_nope_head_dim"});
    m.mla.rope_dim = in.required({"qk_rope_head_dim"});
    m.mla.value_dim = in.integer({"v_head_dim"}).value_or(m.head_dim);
    m.head_dim = sat_add(m.mla.nope_dim, m.mla.rope_dim);
  }
}

void read_mlp(const HfConfig& in, const FamilyRow& family, const Model& otherwise, Model& m) {
  const std::int64_t usual = otherwise.ffn > 0 ? otherwise.ffn : sat_mul(4, m.hidden);
  m.ffn = in.integer({"decoder_ffn_dim", "intermediate_size_mlp", "intermediate_size", "ffn_dim", "d_ff", "n_inner",
                      "ffn_hidden_size", "hidden_dim"})
              .value_or(usual);
  if (family.halved_ffn) m.ffn /= 2;
  // LFM2 states the width before its own rounding: two thirds of it, up to a multiple.
  if (in.flag("block_auto_adjust_ff_dim", false)) {
    const std::int64_t multiple = std::max<std::int64_t>(1, in.integer({"block_multiple_of"}).value_or(256));
    m.ffn = sat_mul(ceil_div(sat_mul(2, m.ffn) / 3, multiple), multiple);
  }
  const std::string activation = in.word("feed_forward_proj");
  if (!activation.empty()) m.mlp_matrices = activation.rfind("gated", 0) == 0 ? 3 : 2;
}

void read_experts(const HfConfig& in, const FamilyRow& family, Model& m) {
  m.moe.experts = in.integer({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}).value_or(0);
  if (m.moe.experts == 0) {
    // Granite 4 without experts keeps what its mixtures share.
    m.ffn = in.integer({"shared_intermediate_size"}).value_or(m.ffn);
    return;
  }
  m.moe.top_k = in.required({"num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_k", "moe_topk"});
  m.moe.expert_ffn = in.integer({"moe_intermediate_size", "intermediate_size"}).value_or(m.ffn);
  const std::int64_t shared = in.integer({"n_shared_experts", "moe_num_shared_experts"}).value_or(family.shared_expert);
  m.moe.shared_ffn =
      in.integer({"shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"})
          .value_or(sat_mul(shared, m.moe.expert_ffn));
  m.moe.first_dense_layers = in.integer({"first_k_dense_replace", "moe_layer_start_index"}).value_or(0);
  m.moe.every = in.integer({"decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period"}).value_or(1);
}

/// A language head that predicts masked tokens: a matrix and a norm before the tied output.
void add_masked_head(Model& m) {
  const double width = static_cast<double>(m.embedding_width > 0 ? m.embedding_width : m.hidden);
  m.lm_head = m.tied = m.head_bias = true;
  m.outside += static_cast<double>(m.hidden) * width + (m.output_bias ? width : 0) + (m.norm_bias ? 2 : 1) * width;
}

void read_outside(const HfConfig& in, const FamilyRow& family, Model& m) {
  const auto hidden = static_cast<double>(m.hidden);
  m.outside += static_cast<double>(family.vectors) * hidden;
  if (family.relative_positions) {
    m.outside +=
        static_cast<double>(in.integer({"relative_attention_num_buckets"}).value_or(32)) * static_cast<double>(m.heads);
  }
  const std::int64_t width = in.integer({"embedding_size", "word_embed_proj_dim"}).value_or(m.hidden);
  const auto embedding = static_cast<double>(width);
  const double types = family.token_types ? static_cast<double>(in.integer({"type_vocab_size"}).value_or(2)) : 0;
  m.outside += types * embedding;
  if (width != m.hidden) {
    m.embedding_width = width;
    // Decoders project the table's rows, and back again before the head. Encoders project once, with a bias, and
    // their positions and norm are as wide as the table.
    m.outside += m.lm_head ? 2 * embedding * hidden : embedding * hidden + hidden;
    if (!m.lm_head) m.outside += (embedding - hidden) * (static_cast<double>(m.learned_positions) + 2);
  }
  bool masked = false;
  if (const nlohmann::json* names = in.list("architectures")) {
    masked = std::any_of(names->begin(), names->end(), [](const nlohmann::json& name) {
      return name.is_string() && name.get_ref<const std::string&>().find("ForMaskedLM") != std::string::npos;
    });
  }
  if (masked && !m.lm_head) {
    add_masked_head(m);
  } else if (family.pooler && !m.lm_head) {
    m.outside += hidden * hidden + hidden;
  }
}

/// The language part: everything but further stacks. `otherwise` holds sizes for keys that are not there.
Model read_text(const HfConfig& in, const FamilyRow& family, const Model& otherwise) {
  Model m = family.defaults;
  m.name = m.family = family.type;
  // Beside a decoder's own number, num_hidden_layers is the encoder's.
  const std::optional<std::int64_t> decoder =
      family.encoder ? in.integer({"decoder_layers", "num_decoder_layers"}) : std::optional<std::int64_t>();
  m.layers =
      decoder ? *decoder : in.required({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, otherwise.layers);
  m.hidden = in.required({"hidden_size", "n_embd", "n_embed", "d_model", "dim"}, otherwise.hidden);
  m.vocab = in.required({"vocab_size", "padded_vocab_size"}, otherwise.vocab);
  m.tied = in.flag("tie_word_embeddings", in.flag("tie_embedding", m.tied));
  // OPT-350M has its norms after the branches, and none after the last layer.
  if (!in.flag("do_layer_norm_before", true)) m.final_norm = false;
  m.max_positions = in.integer({"max_target_positions", "max_position_embeddings", "n_positions", "seq_length",
                                "max_sequence_length", "max_seq_len"})
                        .value_or(otherwise.max_positions);
  if (family.trained_positions) m.learned_positions = sat_add(m.max_positions, family.extra_positions);
  if (family.mlp_free) {
    m.mlp_free_layers = m.layers;
  } else {
    read_mlp(in, family, otherwise, m);
  }
  if (family.recurrent) read_recurrence(in, family, m);
  if (m.attention_free_layers < m.layers) read_attention(in, family, otherwise, m);
  read_experts(in, family, m);
  read_outside(in, family, m);
  if (family.encoder) m.stacks.push_back(read_encoder(in, family, m));
  return m;
}

Result<const FamilyRow*> family_of(const nlohmann::json& config, const std::string& path, const std::string& otherwise,
                                   const Tables& tables) {
  const auto it = config.find("model_type");
  const bool said = it != config.end() && it->is_string();
  if (!said && otherwise.empty()) {
    return Error::invalid({{FieldError::Type::Required, path + ".model_type", "", "says which family it is"}});
  }
  const std::string type = said ? cut_utf8(it->get<std::string>(), 128) : otherwise;
  if (const FamilyRow* family = tables.family(type)) return family;
  return not_supported(path + ".model_type", type,
                       "this model_type; give spec.model.architecture, or parameters for a lower bound");
}

/// A text part and a vision tower, each with a config of its own.
Result<Model> read_composite(const HfConfig& in, const nlohmann::json& config, const FamilyRow& family,
                             const nlohmann::json& vision, const std::string& vision_path, const Tables& tables) {
  std::string text_path = in.path();
  const nlohmann::json* text = in.object({"text_config", "llm_config", "language_config"}, &text_path);
  const bool nested = text != nullptr;
  Result<const FamilyRow*> text_family =
      nested ? family_of(*text, text_path, family.text, tables) : Result<const FamilyRow*>(tables.family(family.text));
  if (!text_family) return text_family.error();
  const HfConfig vision_in(vision, vision_path, in.errors());
  const FamilyRow* tower = tables.family(vision_in.word("model_type"));
  if (tower == nullptr || !tower->tower) tower = tables.family(family.vision);
  const HfConfig text_in(nested ? *text : config, text_path, in.errors());
  Model m = read_text(text_in, **text_family, nested ? (*text_family)->defaults : Model{});
  m.name = m.family = family.type;
  m.tied = text_in.flag("tie_word_embeddings", in.flag("tie_word_embeddings", m.tied));
  m.stacks.push_back(read_tower(vision_in, *tower, &tower->defaults));
  add_projector(in, vision_in, family.projector, m);
  // Both parts end in the common space; the logits are scaled by one learned number.
  if (family.dual) m.outside += static_cast<double>(m.hidden) * static_cast<double>(m.hidden) + 1;
  if (m.stacks.back().tokens == 0) m.fidelity = Fidelity::Approximate;
  return m;
}

/// An image encoder by itself: its patches are the sequence.
Model read_images(const HfConfig& in, const FamilyRow& family) {
  const Stack tower = read_tower(in, family, nullptr);
  Model m = family.defaults;
  static_cast<Block&>(m) = tower;
  m.name = m.family = family.type;
  m.tokens = tower.tokens;
  m.outside = tower.outside;
  m.lm_head = m.final_norm = false;
  if (family.pooler) m.outside += static_cast<double>(m.hidden) * (static_cast<double>(m.hidden) + 1);
  return m;
}

}  // namespace

Result<Model> model_from_hf_config(const nlohmann::json& config, const std::string& path) {
  return model_from_hf_config(config, path, Tables::builtin());
}

Result<Model> model_from_hf_config(const nlohmann::json& config, const std::string& path, const Tables& tables) {
  if (!config.is_object()) {
    return Error::invalid({{FieldError::Type::Invalid, path, cut_utf8(config.dump(), 128), "must be a config.json"}});
  }
  Result<const FamilyRow*> family = family_of(config, path, "", tables);
  if (!family) return family.error();
  const FamilyRow& row = **family;
  std::vector<FieldError> errors;
  const HfConfig in(config, path, errors);
  std::string vision_path;
  const nlohmann::json* vision = in.object({"vision_config"}, &vision_path);
  if ((vision != nullptr && row.vision.empty()) || config.contains("audio_config")) {
    return not_supported(path + ".model_type", row.type,
                         "a tower of this model_type; paste text_config alone to size the text part");
  }
  Model m;
  if (vision != nullptr) {
    Result<Model> composite = read_composite(in, config, row, *vision, vision_path, tables);
    if (!composite) return composite;
    m = std::move(*composite);
  } else if (row.tower) {
    m = read_images(in, row);
  } else {
    m = read_text(in, row, Model{});
  }
  if (errors.empty()) errors = check_model(m, path);
  if (!errors.empty()) return Error::invalid(std::move(errors));
  return m;
}

}  // namespace loadline::estimator
