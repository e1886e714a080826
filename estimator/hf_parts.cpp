#include "estimator/hf_parts.h"

#include <algorithm>
#include <cmath>

#include "base/saturating.h"

namespace loadline::estimator {
namespace {

double d(std::int64_t value) { return static_cast<double>(value); }

/// Entries of a list of layer types whose layers mix tokens without attention.
std::int64_t recurrent_types(const nlohmann::json& types) {
  return std::count_if(types.begin(), types.end(), [](const nlohmann::json& type) {
    if (!type.is_string()) return false;
    const auto& word = type.get_ref<const std::string&>();
    return word.find("linear") != std::string::npos || word.find("mamba") != std::string::npos ||
           word.find("conv") != std::string::npos;
  });
}

/// Layers with attention, by whichever of several rules the config states; nothing when it states none.
std::optional<std::int64_t> attention_layers(const HfConfig& in, std::int64_t layers) {
  if (const nlohmann::json* types = in.list("layer_types"))
    return std::max<std::int64_t>(0, layers - recurrent_types(*types));
  if (const nlohmann::json* indices = in.list("attn_layer_indices")) return static_cast<std::int64_t>(indices->size());
  if (const auto period = in.integer({"attn_layer_period"}); period && *period > 0) {
    const std::int64_t offset = in.integer({"attn_layer_offset"}).value_or(0);
    return offset >= layers ? 0 : (layers - offset - 1) / *period + 1;
  }
  if (const auto interval = in.integer({"full_attention_interval"}); interval && *interval > 0)
    return layers / *interval;
  return std::nullopt;
}

/// Nemotron-H: one letter a layer, M recurrence, * attention, - MLP, E experts.
void read_pattern(const std::string& pattern, Model& m) {
  const auto of = [&](char letter) {
    return static_cast<std::int64_t>(std::count(pattern.begin(), pattern.end(), letter));
  };
  m.recurrence.layers = of('M');
  m.attention_free_layers = std::max<std::int64_t>(0, m.layers - of('*'));
  m.mlp_free_layers = std::max<std::int64_t>(0, m.layers - of('-') - of('E'));
  m.moe.layers = of('E');
}

void read_widths(const HfConfig& in, const FamilyRow& family, Model& m) {
  Recurrence& r = m.recurrence;
  const std::int64_t expanded = sat_mul(in.integer({"mamba_expand", "expand"}).value_or(2), m.hidden);
  switch (r.kind) {
    case Mixing::Mamba1: {
      r.inner = family.mlp_free ? in.integer({"intermediate_size", "d_inner"}).value_or(expanded) : expanded;
      const bool given = in.word("time_step_rank").empty() && in.word("mamba_dt_rank").empty();
      const std::optional<std::int64_t> rank =
          given ? in.integer({"time_step_rank", "mamba_dt_rank"}) : std::optional<std::int64_t>();
      r.rank = rank.value_or(ceil_div(m.hidden, 16));
      break;
    }
    case Mixing::Mamba2:
      r.heads = in.required({"mamba_n_heads", "mamba_num_heads", "num_heads"});
      r.inner = sat_mul(r.heads, in.required({"mamba_d_head", "mamba_head_dim", "head_dim"}));
      r.groups = in.integer({"mamba_n_groups", "n_groups"}).value_or(1);
      break;
    case Mixing::DeltaNet:
      r.heads = in.required({"linear_num_value_heads"});
      r.inner = sat_mul(r.heads, in.required({"linear_value_head_dim"}));
      r.keys = sat_mul(in.required({"linear_num_key_heads"}), in.required({"linear_key_head_dim"}));
      break;
    case Mixing::ShortConv: break;
  }
}

}  // namespace

void read_recurrence(const HfConfig& in, const FamilyRow& family, Model& m) {
  Recurrence& r = m.recurrence;
  const std::string pattern = in.word("hybrid_override_pattern");
  if (!pattern.empty()) {
    read_pattern(pattern, m);
  } else {
    const std::int64_t attention = attention_layers(in, m.layers).value_or(0);
    r.layers = family.side_by_side ? m.layers : std::max<std::int64_t>(0, m.layers - attention);
    m.attention_free_layers = family.side_by_side ? 0 : r.layers;
  }
  read_widths(in, family, m);
  if (r.kind == Mixing::Mamba1 || r.kind == Mixing::Mamba2) {
    r.state = in.required({"state_size", "mamba_d_state", "ssm_state_size"});
  }
  r.kernel = in.integer({"conv_kernel", "mamba_d_conv", "linear_conv_kernel_dim", "conv_L_cache"}).value_or(4);
}

Stack read_encoder(const HfConfig& in, const FamilyRow& family, const Model& decoder) {
  Stack s;
  static_cast<Block&>(s) = decoder;
  s.layers = in.integer({"encoder_layers", "num_layers", "num_hidden_layers"}).value_or(decoder.layers);
  s.heads = s.kv_heads = in.integer({"encoder_attention_heads"}).value_or(decoder.heads);
  s.ffn = in.integer({"encoder_ffn_dim"}).value_or(decoder.ffn);
  if (s.heads > 0 && s.heads != decoder.heads) s.head_dim = s.hidden / s.heads;
  s.norms_per_layer = decoder.norms_per_layer - 1;  // the decoder's third is the cross attention's
  s.outside = norm_parameters(s) * ((decoder.final_norm ? 1 : 0) + (decoder.embedding_norm ? 1 : 0));
  if (family.relative_positions) s.outside += decoder.outside;
  if (family.audio_stem) {
    // Two convolutions of three taps with biases; positions are sines. Source: openai/whisper model.py.
    s.kind = Stack::Kind::Audio;
    s.tokens = in.integer({"max_source_positions"}).value_or(1500);
    s.outside += d(s.hidden) * (3 * d(in.required({"num_mel_bins"})) + 1) + d(s.hidden) * (3 * d(s.hidden) + 1);
  } else {
    s.outside += d(decoder.learned_positions) * d(s.hidden);
  }
  return s;
}

Stack read_tower(const HfConfig& in, const FamilyRow& family, const Model* otherwise) {
  static const Model kNothing;
  const Model& usual = otherwise != nullptr ? *otherwise : kNothing;
  const TowerTraits traits = family.tower.value_or(TowerTraits{});
  Stack s;
  static_cast<Block&>(s) = family.defaults;
  s.kind = Stack::Kind::Vision;
  s.layers = in.required({"num_hidden_layers", "depth", "layers"}, usual.layers);
  s.hidden = in.required({"embed_dim", "hidden_size", "width"}, usual.hidden);
  s.heads = s.kv_heads = in.required({"num_attention_heads", "num_heads"}, usual.heads);
  s.head_dim = s.heads > 0 ? s.hidden / s.heads : 0;
  const double ratio = in.number({"mlp_ratio"}).value_or(4);
  s.ffn = in.integer({"intermediate_size"})
              .value_or(usual.ffn > 0 ? usual.ffn : sat_from_double(std::round(ratio * d(s.hidden))));
  const std::int64_t patch =
      std::max<std::int64_t>(1, in.side({"patch_size", "spatial_patch_size"}).value_or(traits.patch));
  const std::int64_t image = in.side({"image_size"}).value_or(traits.image);
  const std::int64_t along = image / patch;
  const std::int64_t extra = traits.class_token ? 1 : 0;
  const std::int64_t frames = in.integer({"temporal_patch_size"}).value_or(traits.frames);
  const double pixels =
      d(in.integer({"num_channels", "in_channels", "in_chans"}).value_or(3)) * d(frames) * d(patch) * d(patch);
  s.tokens = image > 0 ? sat_add(sat_mul(along, along), extra) : traits.tokens;
  s.outside = pixels * d(s.hidden) + ((traits.patch_bias ? 1 : 0) + d(extra)) * d(s.hidden) +
              d(traits.norms) * norm_parameters(s);
  s.outside += d(family.vectors) * d(s.hidden);
  if (traits.positions) {
    s.outside += d(in.integer({"num_position_embeddings"}).value_or(s.tokens)) * d(s.hidden);
  }
  return s;
}

void add_projector(const HfConfig& in, const HfConfig& vision, const Projector& projector, Model& m) {
  Stack& tower = m.stacks.back();
  double merge = d(projector.merge);
  if (const auto stated = in.integer({"spatial_merge_size", "scale_factor"})) merge = d(*stated);
  if (const auto stated = vision.integer({"spatial_merge_size"})) merge = d(*stated);
  if (const auto ratio = in.number({"downsample_ratio"})) merge = std::round(1 / *ratio);
  const double output = d(vision.integer({"projector_output_dim"}).value_or(m.hidden));
  const auto width = [&](Projector::Width w) {
    switch (w) {
      case Projector::Width::Output: return output;
      case Projector::Width::Tower: return d(tower.hidden);
      case Projector::Width::Merged: return d(tower.hidden) * merge * merge;
      case Projector::Width::Text: break;
    }
    return d(m.hidden);
  };
  const bool biases = in.flag("multimodal_projector_bias", projector.biases);
  double matrices = 0;
  for (std::size_t i = 0; i + 1 < projector.chain.size(); ++i) {
    const double out = width(projector.chain[i + 1]);
    matrices += width(projector.chain[i]) * out + (biases ? out : 0);
  }
  tower.outside += matrices + d(projector.vectors) * width(projector.normed);
  // Qwen3-VL projects after some layers of the tower too, each time behind a norm of merged patches.
  if (const nlohmann::json* deep = vision.list("deepstack_visual_indexes")) {
    tower.outside += static_cast<double>(deep->size()) * (matrices + 2 * width(Projector::Width::Merged));
  }
}

}  // namespace loadline::estimator
