// Reading a Hugging Face config.json. The families' traits are data/families.yaml; here is
// only where each number is found, since the same size goes by several names.
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/saturating.h"
#include "base/text.h"
#include "estimator/model.h"
#include "estimator/tables.h"

namespace loadline::estimator {
namespace {

using Keys = std::initializer_list<const char*>;

/// Reads sizes out of a config and collects what is wrong with them.
class ConfigReader {
 public:
  ConfigReader(const nlohmann::json& config, std::string path) : config_(config), path_(std::move(path)) {}

  /// The first of `keys` that holds a whole number >= 0; nothing when none is there or it is null.
  std::optional<std::int64_t> integer(Keys keys) {
    for (const char* key : keys) {
      const auto it = config_.find(key);
      if (it == config_.end() || it->is_null()) continue;
      if (const auto size = whole_number(*it)) return size;
      refuse(key, it->dump(), "must be a whole number");
      return std::nullopt;
    }
    return std::nullopt;
  }

  std::int64_t required(Keys keys) {
    const std::size_t before = errors_.size();
    const std::optional<std::int64_t> value = integer(keys);
    if (!value && errors_.size() == before) {
      errors_.push_back({FieldError::Type::Required, path_ + "." + *keys.begin(), "", "the size cannot be guessed"});
    }
    return value.value_or(1);
  }

  bool flag(const char* key, bool otherwise) const {
    const auto it = config_.find(key);
    return it != config_.end() && it->is_boolean() ? it->get<bool>() : otherwise;
  }

  std::vector<FieldError>& errors() { return errors_; }

 private:
  /// JSON parsed from text holds 4096 as unsigned; a config built in code or read from YAML may hold it as signed, and
  /// Python writes 4096.0. All three mean the same.
  static std::optional<std::int64_t> whole_number(const nlohmann::json& value) {
    if (value.is_number_unsigned()) return clamp(value.get<std::uint64_t>());
    if (value.is_number_integer() && value.get<std::int64_t>() >= 0) return clamp(value.get<std::uint64_t>());
    if (!value.is_number_float()) return std::nullopt;
    const auto size = value.get<double>();
    if (size < 0 || std::trunc(size) != size) return std::nullopt;
    return sat_from_double(size);
  }
  static std::int64_t clamp(std::uint64_t v) {
    return v > static_cast<std::uint64_t>(kSaturated) ? kSaturated : static_cast<std::int64_t>(v);
  }
  void refuse(const std::string& key, std::string value, std::string detail) {
    errors_.push_back({FieldError::Type::Invalid, path_ + "." + key, cut_utf8(value, 128), std::move(detail)});
  }

  const nlohmann::json& config_;
  std::string path_;
  std::vector<FieldError> errors_;
};

void read_attention(ConfigReader& in, Model& m) {
  m.heads = in.required({"num_attention_heads", "n_head", "num_heads"});
  m.kv_heads = in.integer({"num_key_value_heads", "num_kv_heads", "n_head_kv"}).value_or(m.heads);
  m.head_dim = in.integer({"head_dim"}).value_or(m.heads > 0 ? m.hidden / m.heads : 0);
  // Llama's attention_bias covers all four projections; families with built-in biases keep theirs.
  if (in.flag("attention_bias", false)) m.qkv_bias = m.output_bias = true;
  if (m.family == "falcon") {
    const bool new_decoder = in.flag("new_decoder_architecture", false);
    if (!new_decoder) m.kv_heads = in.flag("multi_query", true) ? 1 : m.heads;
    if (new_decoder) m.norms_per_layer = 2;
  }
  if (const auto kv_rank = in.integer({"kv_lora_rank"}); kv_rank && *kv_rank > 0) {
    m.mla.kv_rank = *kv_rank;
    m.mla.q_rank = in.integer({"q_lora_rank"}).value_or(0);
    m.mla.nope_dim = in.required({"qk_nope_head_dim"});
    m.mla.rope_dim = in.required({"qk_rope_head_dim"});
    m.mla.value_dim = in.required({"v_head_dim"});
    m.head_dim = sat_add(m.mla.nope_dim, m.mla.rope_dim);
  }
}

void read_experts(ConfigReader& in, Model& m) {
  m.moe.experts = in.integer({"num_local_experts", "num_experts", "n_routed_experts"}).value_or(0);
  if (m.moe.experts == 0) return;
  m.moe.top_k = in.required({"num_experts_per_tok", "experts_per_token"});
  m.moe.expert_ffn = in.integer({"moe_intermediate_size"}).value_or(m.ffn);
  m.moe.shared_ffn = in.integer({"shared_expert_intermediate_size"})
                         .value_or(sat_mul(in.integer({"n_shared_experts"}).value_or(0), m.moe.expert_ffn));
  m.moe.first_dense_layers = in.integer({"first_k_dense_replace"}).value_or(0);
  m.moe.every = in.integer({"decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step"}).value_or(1);
}

Error unsupported(const std::string& path, const std::string& type, const std::string& why) {
  return Error::invalid({{FieldError::Type::NotSupported, path, type, "not supported yet: " + why}});
}

}  // namespace

Result<Model> model_from_hf_config(const nlohmann::json& config, const std::string& path) {
  return model_from_hf_config(config, path, Tables::builtin());
}

Result<Model> model_from_hf_config(const nlohmann::json& config, const std::string& path, const Tables& tables) {
  if (!config.is_object()) {
    return Error::invalid({{FieldError::Type::Invalid, path, cut_utf8(config.dump(), 128), "must be a config.json"}});
  }
  const auto type_it = config.find("model_type");
  if (type_it == config.end() || !type_it->is_string()) {
    return Error::invalid({{FieldError::Type::Required, path + ".model_type", "", "says which family it is"}});
  }
  const std::string type = cut_utf8(type_it->get<std::string>(), 128);
  if (config.contains("vision_config") || config.contains("audio_config")) {
    return unsupported(path + ".model_type", type,
                       "vision and audio towers; paste text_config alone to size the text part");
  }
  const FamilyRow* family = tables.family(type);
  if (family == nullptr) {
    return unsupported(path + ".model_type", type,
                       "this model_type; give spec.model.architecture, or parameters for a lower bound");
  }

  ConfigReader in(config, path);
  Model m = family->defaults;
  m.name = type;
  m.family = type;
  m.layers = in.required({"num_hidden_layers", "n_layer", "num_layers"});
  m.hidden = in.required({"hidden_size", "n_embd", "d_model"});
  m.vocab = in.required({"vocab_size"});
  m.ffn = in.integer({"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"}).value_or(sat_mul(4, m.hidden));
  m.tied = in.flag("tie_word_embeddings", m.tied);
  m.mlp_bias = in.flag("mlp_bias", m.mlp_bias);
  m.max_positions = in.integer({"max_position_embeddings", "n_positions"}).value_or(0);
  if (family->trained_positions) m.learned_positions = sat_add(m.max_positions, family->extra_positions);
  if (in.flag("use_sliding_window", true)) m.sliding_window = in.integer({"sliding_window"}).value_or(0);
  read_attention(in, m);
  read_experts(in, m);
  if (in.errors().empty()) in.errors() = check_model(m, path);
  if (!in.errors().empty()) return Error::invalid(std::move(in.errors()));
  return m;
}

}  // namespace loadline::estimator
