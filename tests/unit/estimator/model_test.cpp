#include "estimator/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "api/training_job.h"
#include "estimator/tables.h"

namespace loadline::estimator {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Model preset(const char* name) {
  auto model = model_from_preset(name);
  EXPECT_TRUE(model.ok()) << name;
  return model.ok() ? *model : Model{};
}

std::string test_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class PublishedCount : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedCount, IsWhatTheFormulasGive) {
  const ModelRow& row = *Tables::builtin().model(GetParam());
  const ParameterCount count = count_parameters(row.model);
  EXPECT_EQ(count.total, row.total) << row.source;
  EXPECT_EQ(count.active, row.active > 0 ? row.active : row.total) << row.source;
}

std::vector<std::string> rows_with_a_published_total() {
  std::vector<std::string> rows;
  for (const ModelRow& row : Tables::builtin().models) {
    if (row.total > 0) rows.push_back(row.model.name);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Presets, PublishedCount, ::testing::ValuesIn(rows_with_a_published_total()),
                         [](const auto& test) { return test_name(test.param); });

TEST(Presets, CoverEveryRowWithATotalAndASource) {
  EXPECT_GE(preset_names().size(), 100U);
  EXPECT_GE(rows_with_a_published_total().size(), 95U);
  for (const ModelRow& row : Tables::builtin().models) EXPECT_FALSE(row.source.empty()) << row.model.name;
}

TEST(Presets, AreFoundInAnySpellingAndByHubId) {
  EXPECT_EQ(preset("Llama-3.1-8B").name, "llama-3.1-8b");
  EXPECT_EQ(preset("mixtral_8x7b").name, "mixtral-8x7b-v0.1");
  EXPECT_EQ(preset("mistralai/Mixtral-8x7B-v0.1").name, "mixtral-8x7b-v0.1");
}

TEST(Presets, AMisspeltNameIsRefusedWithNearOnes) {
  const auto model = model_from_preset("llama-3.1-9b");
  ASSERT_FALSE(model.ok());
  ASSERT_EQ(model.error().fields.size(), 1U);
  EXPECT_EQ(model.error().fields[0].field, "spec.model.preset");
  EXPECT_EQ(model.error().fields[0].value, "llama-3.1-9b");
  EXPECT_THAT(model.error().fields[0].detail, HasSubstr("llama-3.1-8b"));
}

TEST(ParameterCount, UsesKvHeadsAndNotQueryHeads) {
  Model m = preset("llama-3.1-8b");
  const double grouped = count_parameters(m).total;
  m.kv_heads = m.heads;
  // Each of the 24 missing KV heads has a key and a value matrix of hidden x headDim in 32 layers.
  EXPECT_EQ(count_parameters(m).total - grouped, 24.0 * 2 * 4096 * 128 * 32);
}

TEST(ParameterCount, UsesTheHeadSizeGivenAndNotHiddenOverHeads) {
  const Model m = preset("qwen3-4b");
  ASSERT_NE(m.head_dim, m.hidden / m.heads);
  EXPECT_EQ(count_parameters(m).total, 4'022'468'096);
}

TEST(ParameterCount, SplitsIntoPartsThatAddUp) {
  for (const ModelRow& row : Tables::builtin().models) {
    const ParameterCount p = count_parameters(row.model);
    const double layers = static_cast<double>(row.model.layers);
    const double parts = p.embedding + p.head + p.final_norm +
                         layers * (p.layer.attention + p.layer.mlp + p.layer.experts + p.layer.norms);
    EXPECT_NEAR(parts, p.total, 1e-9 * p.total) << row.model.name;
    EXPECT_LT(p.linear, p.total) << row.model.name;
    EXPECT_GT(p.linear, 0.2 * p.total) << row.model.name;
  }
}

TEST(HuggingFaceConfig, OfLlamaGivesTheSameCountAsThePreset) {
  const auto model = model_from_hf_config(json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "tie_word_embeddings": false, "attention_bias": false, "max_position_embeddings": 131072, "rope_scaling": {}})"));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(count_parameters(*model).total, count_parameters(preset("llama-3.1-8b")).total);
}

struct ConfigCase {
  const char* preset;
  const char* config;
};

class HuggingFaceFamily : public ::testing::TestWithParam<ConfigCase> {};

TEST_P(HuggingFaceFamily, IsReadAsThePreset) {
  const auto model = model_from_hf_config(json::parse(GetParam().config));
  ASSERT_TRUE(model.ok()) << GetParam().preset << ": " << to_string(model.error().fields.at(0));
  Model read = *model;
  Model known = preset(GetParam().preset);
  EXPECT_EQ(count_parameters(read).total, count_parameters(known).total);
  EXPECT_EQ(count_parameters(read).active, count_parameters(known).active);
  EXPECT_EQ(read.kv_heads, known.kv_heads);
  EXPECT_EQ(read.head_dim, known.head_dim);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, HuggingFaceFamily,
    ::testing::Values(
        ConfigCase{"mixtral-8x7b", R"({"model_type":"mixtral","hidden_size":4096,"intermediate_size":14336,
          "num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":32000,
          "num_local_experts":8,"num_experts_per_tok":2,"sliding_window":null,"tie_word_embeddings":false})"},
        ConfigCase{"qwen2.5-7b", R"({"model_type":"qwen2","hidden_size":3584,"intermediate_size":18944,
          "num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"vocab_size":152064,
          "tie_word_embeddings":false,"use_sliding_window":false,"sliding_window":131072})"},
        ConfigCase{"qwen3-0.6b", R"({"model_type":"qwen3","hidden_size":1024,"intermediate_size":3072,"head_dim":128,
          "num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":8,"vocab_size":151936,
          "tie_word_embeddings":true,"attention_bias":false})"},
        ConfigCase{"qwen3-30b-a3b", R"({"model_type":"qwen3_moe","hidden_size":2048,"intermediate_size":6144,
          "head_dim":128,"num_hidden_layers":48,"num_attention_heads":32,"num_key_value_heads":4,"vocab_size":151936,
          "num_experts":128,"num_experts_per_tok":8,"moe_intermediate_size":768,"decoder_sparse_step":1,
          "tie_word_embeddings":false})"},
        ConfigCase{"gemma-2-9b", R"({"model_type":"gemma2","hidden_size":3584,"intermediate_size":14336,
          "head_dim":256,"num_hidden_layers":42,"num_attention_heads":16,"num_key_value_heads":8,"vocab_size":256000})"},
        ConfigCase{"gpt2", R"({"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"n_positions":1024,
          "vocab_size":50257,"n_inner":null})"},
        ConfigCase{"pythia-1.4b", R"({"model_type":"gpt_neox","hidden_size":2048,"intermediate_size":8192,
          "num_hidden_layers":24,"num_attention_heads":16,"vocab_size":50304,"tie_word_embeddings":false})"},
        ConfigCase{"phi-2", R"({"model_type":"phi","hidden_size":2560,"intermediate_size":10240,
          "num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"vocab_size":51200,
          "tie_word_embeddings":false})"},
        ConfigCase{"falcon-7b", R"({"model_type":"falcon","hidden_size":4544,"num_hidden_layers":32,
          "num_attention_heads":71,"multi_query":true,"new_decoder_architecture":false,"vocab_size":65024,
          "parallel_attn":true,"bias":false})"},
        ConfigCase{"falcon-40b", R"({"model_type":"falcon","hidden_size":8192,"num_hidden_layers":60,
          "num_attention_heads":128,"num_kv_heads":8,"new_decoder_architecture":true,"vocab_size":65024})"},
        ConfigCase{"opt-6.7b", R"({"model_type":"opt","hidden_size":4096,"ffn_dim":16384,"num_hidden_layers":32,
          "num_attention_heads":32,"vocab_size":50272,"max_position_embeddings":2048})"},
        ConfigCase{"deepseek-v2-lite", R"({"model_type":"deepseek_v2","hidden_size":2048,"intermediate_size":10944,
          "num_hidden_layers":27,"num_attention_heads":16,"num_key_value_heads":16,"vocab_size":102400,
          "kv_lora_rank":512,"q_lora_rank":null,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,
          "n_routed_experts":64,"n_shared_experts":2,"num_experts_per_tok":6,"moe_intermediate_size":1408,
          "first_k_dense_replace":1,"moe_layer_freq":1,"tie_word_embeddings":false})"},
        ConfigCase{"gpt-oss-20b", R"({"model_type":"gpt_oss","hidden_size":2880,"intermediate_size":2880,"head_dim":64,
          "num_hidden_layers":24,"num_attention_heads":64,"num_key_value_heads":8,"vocab_size":201088,
          "num_local_experts":32,"num_experts_per_tok":4,"sliding_window":128,"tie_word_embeddings":false,
          "attention_bias":true})"}),
    [](const auto& test) { return test_name(test.param.preset); });

TEST(HuggingFaceConfig, OfAnUnknownTypeIsNotGuessed) {
  const auto model = model_from_hf_config(json::parse(R"({"model_type":"mamba","hidden_size":768})"));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().fields[0].type, FieldError::Type::NotSupported);
  EXPECT_EQ(model.error().fields[0].field, "spec.model.huggingFaceConfig.model_type");
  EXPECT_THAT(model.error().fields[0].detail, HasSubstr("not supported yet"));
}

TEST(HuggingFaceConfig, WithAVisionTowerIsNotSizedAsTextOnly) {
  const auto model =
      model_from_hf_config(json::parse(R"({"model_type":"gemma3","vision_config":{},"text_config":{}})"));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().fields[0].detail, HasSubstr("vision"));
}

TEST(HuggingFaceConfig, ReportsEveryMissingAndBadSizeAtOnce) {
  const auto model =
      model_from_hf_config(json::parse(R"({"model_type":"llama","hidden_size":-4096,"vocab_size":"x"})"));
  ASSERT_FALSE(model.ok());
  std::vector<std::string> fields;
  for (const FieldError& e : model.error().fields) fields.push_back(e.field);
  const std::string at = "spec.model.huggingFaceConfig.";
  EXPECT_THAT(fields, ::testing::UnorderedElementsAre(at + "num_hidden_layers", at + "hidden_size", at + "vocab_size",
                                                      at + "num_attention_heads"));
}

json llama_config(const json& hidden_size) {
  return {{"model_type", "llama"},   {"hidden_size", hidden_size}, {"intermediate_size", 14336},
          {"num_hidden_layers", 32}, {"num_attention_heads", 32},  {"num_key_value_heads", 8},
          {"vocab_size", 128256}};
}

TEST(HuggingFaceConfig, TakesAWholeNumberInWhicheverJsonTypeItIsHeld) {
  for (const json& held : {json(std::int64_t{4096}), json(std::uint64_t{4096}), json(4096.0)}) {
    const auto model = model_from_hf_config(llama_config(held));
    ASSERT_TRUE(model.ok()) << held.type_name() << " " << held;
    EXPECT_EQ(model->hidden, 4096);
  }
}

TEST(HuggingFaceConfig, RefusesANumberThatIsNegativeOrNotWhole) {
  for (const json& held : {json(-4096), json(-4096.0), json(4096.5)}) {
    const auto model = model_from_hf_config(llama_config(held));
    ASSERT_FALSE(model.ok()) << held;
    ASSERT_EQ(model.error().fields.size(), 1U) << held;
    EXPECT_EQ(model.error().fields[0].field, "spec.model.huggingFaceConfig.hidden_size");
    EXPECT_EQ(model.error().fields[0].detail, "must be a whole number");
  }
}

TEST(Architecture, ByNumbersGivesTheSameModelAsThePreset) {
  api::ArchitectureSpec spec;
  spec.layers = 32;
  spec.hidden = 4096;
  spec.heads = 32;
  spec.kvHeads = 8;
  spec.ffn = 14336;
  spec.vocab = 128256;
  const auto model = model_from_architecture(spec);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(count_parameters(*model).total, 8'030'261'248);
}

TEST(Architecture, NamesEveryMissingField) {
  const auto model = model_from_architecture({});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().fields.size(), 5U);
  EXPECT_EQ(model.error().fields[0].field, "spec.model.architecture.layers");
}

TEST(Architecture, RefusesHeadsThatKvHeadsDoNotDivide) {
  Model m = preset("llama-3.1-8b");
  m.kv_heads = 7;
  const auto errors = check_model(m, "spec.model.architecture");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].field, "spec.model.architecture.kvHeads");
}

TEST(ParametersOnly, GiveALowerBoundAndNothingElse) {
  const auto model = model_from_parameters(8.03e9);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->fidelity, Fidelity::LowerBound);
  EXPECT_EQ(count_parameters(*model).total, 8.03e9);
  EXPECT_FALSE(model_from_parameters(0).ok());
  EXPECT_FALSE(model_from_parameters(-1).ok());
}

TEST(Tables, AMountedFileReplacesOrAddsRows) {
  const auto tables = Tables::builtin().with_overrides(R"(
models:
  - {name: house-model, family: llama, source: ours,
     shape: {layers: 2, hidden: 64, heads: 4, kv_heads: 4, head_dim: 16, ffn: 128, vocab: 1000}}
recipes:
  - {name: megatron, source: measured here, block_copies: 2}
)");
  ASSERT_TRUE(tables.ok()) << tables.error().message;
  EXPECT_TRUE(model_from_preset("house-model", *tables).ok());
  EXPECT_EQ(tables->recipe("megatron")->block_copies, 2);
  EXPECT_EQ(tables->recipe("megatron")->norm_copies, 1) << "what the row leaves out stays as it was";
  EXPECT_FALSE(model_from_preset("house-model").ok()) << "the built-in tables do not change";
}

TEST(Tables, AMisspeltKeyIsAnErrorThatNamesIt) {
  const auto tables = Tables::builtin().with_overrides("recipes: [{name: x, source: y, norm_copy: 3}]");
  ASSERT_FALSE(tables.ok());
  EXPECT_THAT(tables.error().message, HasSubstr("recipes[0].norm_copy"));
}

TEST(Tables, TextThatIsNotYamlIsAnError) { EXPECT_FALSE(Tables::builtin().with_overrides("{a: [").ok()); }

}  // namespace
}  // namespace loadline::estimator
