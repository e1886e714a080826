#include "estimator/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "api/training_job.h"
#include "estimator/tables.h"
#include "models.h"

namespace loadline::estimator {
namespace {

using ::testing::HasSubstr;

class PublishedCount : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedCount, IsWhatTheFormulasGive) {
  const ModelRow& row = *Tables::builtin().model(GetParam());
  const ParameterCount count = count_parameters(row.model);
  if (row.total > 0) {
    EXPECT_EQ(count.total, row.total) << row.source;
  } else {
    EXPECT_NEAR(count.total, row.about, 0.005 * row.about) << row.source;
  }
  if (row.active > 0) {
    EXPECT_EQ(count.active, row.active) << row.source;
  }
}

std::vector<std::string> rows_with_a_published_total() {
  std::vector<std::string> rows;
  for (const ModelRow& row : Tables::builtin().models) {
    if (row.total > 0 || row.about > 0) rows.push_back(row.model.name);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Presets, PublishedCount, ::testing::ValuesIn(rows_with_a_published_total()),
                         [](const auto& test) { return test_name(test.param); });

TEST(Presets, CoverEveryRowWithATotalAndASource) {
  EXPECT_GE(preset_names().size(), 250U);
  EXPECT_GE(rows_with_a_published_total().size(), 240U);
  for (const ModelRow& row : Tables::builtin().models) EXPECT_FALSE(row.source.empty()) << row.model.name;
}

TEST(Presets, HaveNamesOfTheirOwn) {
  std::map<std::string, std::string> owners;
  for (const ModelRow& row : Tables::builtin().models) {
    std::vector<std::string> names = row.also;
    names.push_back(row.model.name);
    for (const std::string& name : names) {
      EXPECT_EQ(Tables::builtin().model(name), Tables::builtin().model(row.model.name)) << name;
      const std::string& owner = owners.emplace(name.substr(name.find('/') + 1), row.model.name).first->second;
      EXPECT_EQ(owner, row.model.name) << name;
    }
  }
}

TEST(Presets, AreFoundInAnySpellingAndByHubId) {
  EXPECT_EQ(preset("Llama-3.1-8B").name, "llama-3.1-8b");
  EXPECT_EQ(preset("mixtral_8x7b").name, "mixtral-8x7b-v0.1");
  EXPECT_EQ(preset("mistralai/Mixtral-8x7B-v0.1").name, "mixtral-8x7b-v0.1");
  EXPECT_EQ(preset("Ministral-8B-Instruct-2410").name, "ministral-8b");
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
    const double parts = p.embedding + p.head + p.final_norm + p.other +
                         layers * (p.layer.attention + p.layer.mlp + p.layer.experts + p.layer.norms);
    EXPECT_NEAR(parts, p.total, 1e-9 * p.total) << row.model.name;
    EXPECT_LT(p.linear, p.total) << row.model.name;
    EXPECT_GT(p.linear, 0.05 * p.total) << row.model.name;
  }
}

TEST(ParameterCount, CountsAnEncoderAndItsCrossAttention) {
  Model m = preset("t5-small");
  const double whole = count_parameters(m).total;
  m.cross_attention = false;
  EXPECT_EQ(whole - count_parameters(m).total, 6 * 4.0 * 512 * 512);
  ASSERT_EQ(m.stacks.size(), 1U);
  const double encoder = stack_parameters(m.stacks[0]);
  m.stacks.clear();
  EXPECT_EQ(whole - count_parameters(m).total, 6 * 4.0 * 512 * 512 + encoder);
}

TEST(ParameterCount, OfSharedLayersIsOfOneLayer) {
  Model m = preset("albert-base-v2");
  const double shared = count_parameters(m).total;
  m.shared_layers = false;
  EXPECT_EQ(count_parameters(m).total - shared, 11.0 * stack_layer_parameters(preset("albert-base-v2")));
}

TEST(ParameterCount, HasNoHeadWithoutAVocabularyToPredict) {
  EXPECT_EQ(count_parameters(preset("vit-base")).head, 0);
  EXPECT_EQ(count_parameters(preset("bert-base")).head, 0);
  EXPECT_EQ(preset("vit-base").tokens, 197);
}

RC_GTEST_PROP(ParameterCount, NeverFallsWithMoreLayersWidthOrVocabulary, ()) {
  const std::vector<ModelRow>& rows = Tables::builtin().models;
  Model m = rows[*rc::gen::inRange<std::size_t>(0, rows.size())].model;
  const double before = count_parameters(m).total;
  const std::int64_t more = *rc::gen::inRange<std::int64_t>(1, 1000);
  switch (*rc::gen::inRange(0, 5)) {
    case 0: m.layers += more; break;
    case 1: m.hidden += more; break;
    case 2: m.vocab += more; break;
    case 3: m.ffn += more; break;
    default: m.moe.experts += m.moe.experts > 0 ? more : 0; break;
  }
  RC_ASSERT(count_parameters(m).total >= before);
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
