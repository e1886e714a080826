#include "cli/yaml.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

using nlohmann::json;

json one(const std::string& text) {
  const auto documents = json_from_yaml(text, "t.yaml");
  EXPECT_TRUE(documents.ok()) << documents.error().message;
  EXPECT_EQ(documents->size(), 1U) << text;
  return documents->at(0);
}

std::string refusal(const std::string& text) {
  const auto documents = json_from_yaml(text, "t.yaml");
  EXPECT_FALSE(documents.ok()) << text;
  return documents.ok() ? "" : documents.error().message;
}

struct Scalar {
  const char* text;
  json value;
};

class YamlScalar : public testing::TestWithParam<Scalar> {};

TEST_P(YamlScalar, IsTypedByTheCoreSchema) {
  const json value = one(std::string("v: ") + GetParam().text).at("v");
  EXPECT_EQ(value, GetParam().value) << value.dump();
  EXPECT_EQ(value.type(), json::parse(GetParam().value.dump()).type()) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Scalars, YamlScalar,
    testing::Values(Scalar{"8", 8}, Scalar{"-3", -3}, Scalar{"+7", 7}, Scalar{"0x1F", 31}, Scalar{"0o17", 15},
                    Scalar{"8.03e9", 8.03e9}, Scalar{"8.03E+09", 8.03e9}, Scalar{"1.", 1.0}, Scalar{".5", 0.5},
                    Scalar{"1e3", 1000.0}, Scalar{"99999999999999999999", 1e20}, Scalar{"true", true},
                    Scalar{"False", false}, Scalar{"yes", "yes"}, Scalar{"no", "no"}, Scalar{"on", "on"},
                    Scalar{"~", nullptr}, Scalar{"null", nullptr}, Scalar{"", nullptr}, Scalar{"\"8\"", "8"},
                    Scalar{"'true'", "true"}, Scalar{"\"\"", ""}, Scalar{"!!str 8", "8"}, Scalar{"80Gi", "80Gi"},
                    Scalar{"1.2.3", "1.2.3"}, Scalar{"0x", "0x"}, Scalar{"--1", "--1"}, Scalar{"+-1", "+-1"},
                    Scalar{"2026-11-30", "2026-11-30"}, Scalar{"18446744073709551615", 18446744073709551615ULL},
                    Scalar{"1e999", "1e999"}, Scalar{".inf", ".inf"}, Scalar{"14m", "14m"}));

TEST(Yaml, ReadsSeveralDocumentsAndLeavesEmptyOnesOut) {
  const auto documents = json_from_yaml("---\na: 1\n---\n---\n# only a comment\n---\nb: [x, {c: 2}]\n", "t.yaml");
  ASSERT_TRUE(documents.ok());
  ASSERT_EQ(documents->size(), 2U);
  EXPECT_EQ(documents->at(1), json::parse(R"({"b":["x",{"c":2}]})"));
}

TEST(Yaml, ReadsJson) { EXPECT_EQ(one("{\"a\": [1, \"2\", null]}"), json::parse(R"({"a":[1,"2",null]})")); }

TEST(Yaml, KeepsABlockOfTextAsItIs) { EXPECT_EQ(one("t: |\n  a\n  b\n").at("t"), "a\nb\n"); }

TEST(Yaml, FollowsAliasesAndMergesMaps) {
  const json got = one("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\nagain: *b\n");
  EXPECT_EQ(got.at("use"), json::parse(R"({"x":1,"y":3})"));
  EXPECT_EQ(got.at("again"), json::parse(R"({"x":1,"y":2})"));
}

TEST(Yaml, RefusesADuplicateKeyAndSaysWhere) {
  EXPECT_EQ(refusal("gpus: 1\nmodel: a\ngpus: 2\n"), "t.yaml:3: duplicate key \"gpus\"");
}

TEST(Yaml, SaysWhereTheTextIsBroken) {
  EXPECT_EQ(refusal("a: 1\nb: [1, 2\n").substr(0, 9), "t.yaml:3:");
  EXPECT_EQ(refusal("a: !!binary aGk=\n"), "t.yaml:1: unknown tag tag:yaml.org,2002:binary");
}

TEST(Yaml, RefusesAliasesThatExpandWithoutEnd) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 10; ++level) {
    const std::string last = "*a" + std::to_string(level - 1);
    laughs += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + last;
    for (int copy = 1; copy < 10; ++copy) laughs += ", " + last;
    laughs += "]\n";
  }
  EXPECT_NE(refusal(laughs).find("expands to more than 200000 values"), std::string::npos);
  EXPECT_EQ(refusal("a: &a [*a]\n"), "t.yaml:1: an alias inside of what it stands for");
}

TEST(Yaml, EndsOnTextThatTheParserCannotGetPast) {
  for (const char* text : {",-", ",{\n", "\n,.%\t}", "]", "}: x"}) refusal(text);
}

TEST(Yaml, RefusesNestingThatAliasesHide) {
  std::string text = "a0: &a0 [x]\n";
  for (int level = 1; level < 120; ++level) {
    text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [*a" + std::to_string(level - 1) + "]\n";
  }
  EXPECT_NE(refusal(text).find("nested deeper than 100"), std::string::npos);
}

TEST(Yaml, RefusesNestingThatWouldExhaustTheStack) { refusal(std::string(50000, '[')); }

RC_GTEST_PROP(YamlProperty, ReadsBackWhatJsonWrites, (std::int64_t number, const std::string& raw)) {
  std::string text;
  for (const char c : raw) {
    if (c >= ' ' && c < 127) text += c;
  }
  const json value = {{"number", number}, {"text", text}, {"list", {number, text}}};
  const auto documents = json_from_yaml(value.dump(), "t.yaml");
  RC_ASSERT(documents.ok());
  RC_ASSERT(documents->at(0) == value);
}

RC_GTEST_PROP(YamlProperty, NeverThrows, (const std::string& text)) { (void)json_from_yaml(text, "t.yaml"); }

}  // namespace
}  // namespace loadline::cli
