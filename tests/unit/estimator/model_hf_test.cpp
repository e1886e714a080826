#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "estimator/model.h"
#include "models.h"

namespace loadline::estimator {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

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
  const auto model = model_from_hf_config(json::parse(R"({"model_type":"hyena","hidden_size":768})"));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().fields[0].type, FieldError::Type::NotSupported);
  EXPECT_EQ(model.error().fields[0].field, "spec.model.huggingFaceConfig.model_type");
  EXPECT_THAT(model.error().fields[0].detail, HasSubstr("not supported yet"));
  EXPECT_THAT(model.error().fields[0].detail, HasSubstr("spec.model.architecture, or parameters for a lower bound"));
}

TEST(HuggingFaceConfig, WithATowerThatIsNotKnownIsNotSizedAsTextOnly) {
  const auto model = model_from_hf_config(json::parse(R"({"model_type":"llama","vision_config":{},"text_config":{}})"));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().fields[0].detail, HasSubstr("paste text_config alone"));
}

json fixture(const std::string& name) {
  std::ifstream file(std::string(LOADLINE_SOURCE_DIR) + "/tests/data/hf/" + name + ".json");
  return json::parse(file);
}

TEST(HuggingFaceConfig, NamesABadValueInsideATowerByItsWholePath) {
  json config = fixture("llava-1.5-7b");
  config["vision_config"]["num_hidden_layers"] = -3;
  config["text_config"]["vocab_size"] = "many";
  const auto model = model_from_hf_config(config);
  ASSERT_FALSE(model.ok());
  std::vector<std::string> fields;
  for (const FieldError& e : model.error().fields) fields.push_back(e.field);
  EXPECT_THAT(fields, ::testing::UnorderedElementsAre("spec.model.huggingFaceConfig.text_config.vocab_size",
                                                      "spec.model.huggingFaceConfig.vision_config.num_hidden_layers"));
}

TEST(HuggingFaceConfig, OfAMaskedLanguageModelHasItsHead) {
  json config = fixture("bert-base-uncased");
  config["architectures"] = {"BertForMaskedLM"};
  const auto model = model_from_hf_config(config);
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(model->lm_head);
  EXPECT_EQ(count_parameters(*model).total, 109'514'298);
}

TEST(HuggingFaceConfig, OfImagesOfAnySizeStatesHowManyPatchesItAssumes) {
  const auto model = model_from_hf_config(fixture("qwen2.5-vl-7b"));
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(model->stacks.size(), 1U);
  EXPECT_EQ(model->stacks[0].tokens, 4096);
}

/// Each file is a config.json as published, named after the preset of the same model.
class PublishedConfig : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedConfig, IsReadAsThePresetOfItsName) {
  const auto model = model_from_hf_config(fixture(GetParam()));
  ASSERT_TRUE(model.ok()) << to_string(model.error().fields.at(0));
  const Model known = preset(GetParam().c_str());
  EXPECT_EQ(count_parameters(*model).total, count_parameters(known).total);
  EXPECT_EQ(count_parameters(*model).active, count_parameters(known).active);
  EXPECT_EQ(model->heads, known.heads);
  EXPECT_EQ(model->lm_head, known.lm_head);
  EXPECT_EQ(model->tokens, known.tokens);
  EXPECT_EQ(model->recurrence.layers, known.recurrence.layers);
  ASSERT_EQ(model->stacks.size(), known.stacks.size());
  for (std::size_t i = 0; i < known.stacks.size(); ++i) {
    EXPECT_EQ(model->stacks[i].tokens, known.stacks[i].tokens);
    EXPECT_EQ(model->stacks[i].kind, known.stacks[i].kind);
    EXPECT_EQ(stack_parameters(model->stacks[i]), stack_parameters(known.stacks[i]));
  }
}

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(std::string(LOADLINE_SOURCE_DIR) + "/tests/data/hf")) {
    names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PublishedConfig, ::testing::ValuesIn(fixtures()),
                         [](const auto& test) { return test_name(test.param); });

TEST(HuggingFaceConfig, WithAnyAbsurdSizeIsRefusedOrCountedButNeverWraps) {
  for (const std::string& name : fixtures()) {
    const json config = fixture(name);
    for (const auto& [key, value] : config.items()) {
      if (!value.is_number()) continue;
      for (const json& absurd : {json(1e19), json(std::numeric_limits<std::uint64_t>::max()), json(0), json(-1)}) {
        json changed = config;
        changed[key] = absurd;
        const auto model = model_from_hf_config(changed);
        if (!model.ok()) continue;
        const double total = count_parameters(*model).total;
        EXPECT_TRUE(std::isfinite(total) && total > 0) << name << " " << key << " " << absurd;
      }
    }
  }
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

}  // namespace
}  // namespace loadline::estimator
