// Walks every field of the schemas: read and written unchanged, and a verdict with the field's own
// path when it is absent, null or of another type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/codec.h"
#include "tests/unit/api/schema.h"

namespace loadline::api {
namespace {

using nlohmann::json;

// One kind behind one face, so that each test is written once.
struct Kind {
  std::string name, plural;
  std::function<Result<json>(const json&, UnknownFields)> round_trip;
};

template <class Parse>
std::function<Result<json>(const json&, UnknownFields)> round_trip(Parse parse) {
  return [parse](const json& object, UnknownFields unknown) -> Result<json> {
    const auto parsed = parse(object, unknown);
    if (!parsed.ok()) return parsed.error();
    return to_json(*parsed);
  };
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {TrainingJob::kKind, TrainingJob::kPlural, round_trip(parse_training_job)},
      {PlacementPolicy::kKind, PlacementPolicy::kPlural, round_trip(parse_placement_policy)},
      {GPUPool::kKind, GPUPool::kPlural, round_trip(parse_gpu_pool)}};
  return all;
}

// A field of a schema, as a pointer into an object and as the path of an error.
struct Field {
  json::json_pointer pointer;
  std::string path;
  const json* schema = nullptr;
  bool required = false;
};

void collect(const json& schema, const json::json_pointer& pointer, const std::string& path, std::vector<Field>& out) {
  const json required = schema.value("required", json::array());
  if (!schema.contains("properties")) return;
  for (const auto& [name, property] : schema.at("properties").items()) {
    const bool must = std::find(required.begin(), required.end(), name) != required.end();
    Field field{pointer / name, path.empty() ? name : path + "." + name, &property, must};
    out.push_back(field);
    collect(property, field.pointer, field.path, out);
    if (property.value("type", "") == "array")
      collect(property.at("items"), field.pointer / 0, field.path + "[0]", out);
  }
}

// Fields below spec and status; `schema` must outlive the result.
std::vector<Field> fields_of(const json& schema) {
  std::vector<Field> out;
  for (const char* part : {"spec", "status"}) {
    collect(schema.at("properties").at(part), json::json_pointer("") / part, part, out);
  }
  return out;
}

bool fits(const json& schema, const json& value) {
  const std::string type = schema.at("type");
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer() || value == json(8.03e9);
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string() && !schema.contains("enum");
  if (type == "array") return value.is_array();
  return value.is_object();
}

TEST(EveryField, IsReadAndWrittenUnchanged) {
  for (const Kind& kind : kinds()) {
    const json object = crd::complete_object(kind.name, kind.plural, 2);
    const auto again = kind.round_trip(object, UnknownFields::Reject);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, object) << json::diff(object, *again).dump(1);
  }
}

TEST(EveryField, MayBeAbsentOrNullUnlessItIsRequired) {
  for (const Kind& kind : kinds()) {
    const json& schema = crd::schema_of(kind.plural);
    const json object = crd::complete_object(kind.name, kind.plural);
    for (const Field& field : fields_of(schema)) {
      json without = object;
      without.at(field.pointer.parent_pointer()).erase(field.pointer.back());
      json null = object;
      null[field.pointer] = nullptr;
      for (const json& changed : {without, null}) {
        const auto verdict = kind.round_trip(changed, UnknownFields::Reject);
        if (field.required && field.path.starts_with("spec")) {
          ASSERT_FALSE(verdict.ok()) << field.path;
          EXPECT_EQ(to_string(verdict.error().fields.at(0)), field.path + ": Required value: must be given");
        } else {
          EXPECT_TRUE(verdict.ok()) << field.path << ": " << verdict.error().message;
        }
      }
    }
  }
}

TEST(EveryField, OfAnotherTypeIsNamedInTheError) {
  const std::vector<json> values{
      true, 1, -3, 8.03e9, 1.5, 1e300, "", "word", json::array(), json::array({nullptr}), json::object()};
  for (const Kind& kind : kinds()) {
    const json& schema = crd::schema_of(kind.plural);
    const json object = crd::complete_object(kind.name, kind.plural);
    for (const Field& field : fields_of(schema)) {
      for (const json& value : values) {
        if (fits(*field.schema, value)) continue;
        json changed = object;
        changed[field.pointer] = value;
        const auto verdict = kind.round_trip(changed, UnknownFields::Reject);
        ASSERT_FALSE(verdict.ok()) << field.path << " = " << value;
        ASSERT_EQ(verdict.error().fields.size(), 1U) << verdict.error().message;
        EXPECT_EQ(verdict.error().fields[0].field, field.path) << value;
      }
    }
  }
}

TEST(EveryField, MisspeltIsRefusedWithTheRightSpelling) {
  for (const Kind& kind : kinds()) {
    const json& schema = crd::schema_of(kind.plural);
    const json object = crd::complete_object(kind.name, kind.plural);
    for (const Field& field : fields_of(schema)) {
      if (field.required) continue;
      json changed = object;
      json& parent = changed.at(field.pointer.parent_pointer());
      const std::string name = field.pointer.back();
      const std::string wrong = name + "s";
      if (parent.contains(wrong)) continue;  // attempt and attempts are two fields
      parent[wrong] = parent[name];
      const auto verdict = kind.round_trip(changed, UnknownFields::Reject);
      ASSERT_FALSE(verdict.ok()) << field.path;
      EXPECT_THAT(verdict.error().fields.at(0).detail, testing::HasSubstr("did you mean \"" + name + "\"?"))
          << field.path;
      EXPECT_TRUE(kind.round_trip(changed, UnknownFields::Ignore).ok()) << field.path;
    }
  }
}

json any_json(int levels) {
  switch (*rc::gen::inRange(0, levels > 0 ? 9 : 7)) {
    case 0: return nullptr;
    case 1: return *rc::gen::arbitrary<bool>();
    case 2: return *rc::gen::arbitrary<std::int64_t>();
    case 3: return *rc::gen::arbitrary<std::uint64_t>();
    case 4: return *rc::gen::arbitrary<double>();
    case 5: return *rc::gen::arbitrary<std::string>();
    case 6: return *rc::gen::element<std::string>("auto", "lora", "spot", "10m", "1.85");
    case 7: {
      json list = json::array();
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) list.push_back(any_json(levels - 1));
      return list;
    }
    default: {
      json object = json::object();
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i)
        object[*rc::gen::arbitrary<std::string>()] = any_json(levels - 1);
      return object;
    }
  }
}

RC_GTEST_PROP(EveryField, WithAnyValueGetsAVerdictAndWhatIsReadStaysTheSame, ()) {
  const Kind& kind = kinds()[*rc::gen::inRange<std::size_t>(0, kinds().size())];
  json object = crd::complete_object(kind.name, kind.plural);
  const auto fields = fields_of(crd::schema_of(kind.plural));
  object[(*rc::gen::elementOf(fields)).pointer] = any_json(3);
  const auto once = kind.round_trip(object, UnknownFields::Ignore);
  if (!once.ok()) {
    RC_ASSERT(!once.error().fields.empty());
    for (const FieldError& error : once.error().fields) {
      const std::string text = to_string(error);
      RC_ASSERT(text.size() < 512U);
      RC_ASSERT(text.find('\n') == std::string::npos);
    }
    return;
  }
  RC_ASSERT(*kind.round_trip(*once, UnknownFields::Reject) == *once);
}

}  // namespace
}  // namespace loadline::api
