// The CRD schema and the C++ types know the same fields, of the same types, and every field is
// described and bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "api/fields.h"
#include "api/gpu_pool.h"
#include "api/placement_policy.h"
#include "api/training_job.h"
#include "tests/unit/api/schema.h"

namespace loadline::api {
namespace {

using crd::schema_of;
using nlohmann::json;

// Walks a type and its schema side by side.
class Comparison {
 public:
  explicit Comparison(bool in_status) : in_status_(in_status) {}

  template <class T>
  void compare(const json& schema, const std::string& path, const T& value = T{}) {
    if constexpr (is_optional<T>) {
      compare<typename T::value_type>(schema, path);
    } else if constexpr (std::is_same_v<T, bool>) {
      expect_type(schema, path, "boolean", "");
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      expect_type(schema, path, "integer", "int64");
      expect_bounds(schema, path);
    } else if constexpr (std::is_same_v<T, double>) {
      expect_type(schema, path, "number", "double");
      expect_bounds(schema, path);
    } else if constexpr (std::is_same_v<T, std::string>) {
      expect_type(schema, path, "string", schema.value("format", ""));
      if (!schema.contains("maxLength")) say(path, "has no maxLength");
      if (schema.contains("enum")) say(path, "is an enum in the schema and any text in C++");
    } else if constexpr (std::is_enum_v<T>) {
      expect_type(schema, path, "string", "");
      expect_words(schema, path, enum_words<T>());
    } else if constexpr (is_list<T>) {
      expect_type(schema, path, "array", "");
      if (!schema.contains("maxItems")) say(path, "has no maxItems");
      if (!schema.contains("x-kubernetes-list-type")) say(path, "does not say how server-side apply merges it");
      compare<typename T::value_type>(schema.value("items", json::object()), path + "[]");
    } else if constexpr (is_map<T>) {
      expect_type(schema, path, "object", "");
      if (!schema.contains("maxProperties")) say(path, "has no maxProperties");
      compare<typename T::mapped_type>(schema.value("additionalProperties", json::object()), path + "{}");
    } else if constexpr (std::is_same_v<T, json>) {
      expect_type(schema, path, "object", "");
      if (!schema.value("x-kubernetes-preserve-unknown-fields", false)) say(path, "must preserve unknown fields");
    } else {
      compare_struct(schema, path, value);
    }
  }

  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  template <HasFields T>
  void compare_struct(const json& schema, const std::string& path, const T& value) {
    expect_type(schema, path, "object", "");
    const json properties = schema.value("properties", json::object());
    if (schema.value("x-kubernetes-preserve-unknown-fields", false)) say(path, "keeps fields that C++ does not know");
    std::set<std::string> known;
    T::fields(value, [&](const char* name, const auto& member) {
      known.insert(name);
      const std::string field = path + "." + name;
      if (!properties.contains(name)) return say(field, "is not in the schema");
      if (properties[name].value("description", "").empty()) say(field, "has no description");
      compare<std::remove_cvref_t<decltype(member)>>(properties[name], field);
    });
    for (const auto& [name, property] : properties.items()) {
      if (!known.contains(name)) say(path + "." + name, "is in the schema and not in C++");
    }
    const auto required = schema.value("required", std::set<std::string>{});
    for (const std::string& name : required) {
      if (!known.contains(name)) say(path + "." + name, "is required and unknown");
      if (!in_status_ && !is_required<T>(name)) say(path + "." + name, "is required by the schema alone");
    }
    for (const std::string& name : known) {
      if (is_required<T>(name) && !required.contains(name)) say(path + "." + name, "is required by C++ alone");
    }
  }

  void expect_type(const json& schema, const std::string& path, const std::string& type, const std::string& format) {
    if (schema.value("type", "") != type) say(path, "has type " + schema.value("type", "none") + ", not " + type);
    if (schema.value("format", "") != format)
      say(path, "has format " + schema.value("format", "none") + ", not " + format);
  }

  // What people write is bounded on both sides; what we write may be any number.
  void expect_bounds(const json& schema, const std::string& path) {
    if (in_status_) return;
    if (!schema.contains("minimum")) say(path, "has no minimum");
    if (!schema.contains("maximum")) say(path, "has no maximum");
  }

  void expect_words(const json& schema, const std::string& path, const std::vector<std::string_view>& words) {
    const auto listed = schema.value("enum", std::set<std::string>{});
    if (listed != std::set<std::string>(words.begin(), words.end())) say(path, "has other words than C++");
    // kubectl explain shows four words of an enum and then dots, so the description has to name them.
    if (listed.size() <= 4 || in_status_) return;
    for (const std::string& word : listed) {
      const std::string description = schema.value("description", "");
      if (description.find(word) == std::string::npos) say(path, "does not describe " + word);
    }
  }

  void say(const std::string& path, const std::string& problem) { problems_.push_back(path + " " + problem); }

  bool in_status_;
  std::vector<std::string> problems_;
};

template <class Part>
std::vector<std::string> differences(const std::string& plural, const char* part, bool in_status) {
  Comparison comparison(in_status);
  comparison.compare<Part>(schema_of(plural).at("properties").at(part), part);
  return comparison.problems();
}

std::string lines(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) text += problem + "\n";
  return text;
}

TEST(Schema, OfATrainingJobHasTheFieldsOfTheCppType) {
  EXPECT_EQ(lines(differences<TrainingJobSpec>("trainingjobs", "spec", false)), "");
  EXPECT_EQ(lines(differences<TrainingJobStatus>("trainingjobs", "status", true)), "");
}

TEST(Schema, OfAPlacementPolicyHasTheFieldsOfTheCppType) {
  EXPECT_EQ(lines(differences<PlacementPolicySpec>("placementpolicies", "spec", false)), "");
  EXPECT_EQ(lines(differences<PlacementPolicyStatus>("placementpolicies", "status", true)), "");
}

TEST(Schema, OfAGpuPoolHasTheFieldsOfTheCppType) {
  EXPECT_EQ(lines(differences<GPUPoolSpec>("gpupools", "spec", false)), "");
  EXPECT_EQ(lines(differences<GPUPoolStatus>("gpupools", "status", true)), "");
}

TEST(Schema, ComparisonTellsEveryKindOfDifference) {
  Comparison comparison(false);
  comparison.compare<GpusSpec>(json::parse(R"({"type": "object", "required": ["min"], "properties": {
    "count": {"type": "string", "format": "int64", "minimum": 1, "description": "x"},
    "min": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 2},
    "most": {"type": "integer"}}})"),
                               "gpus");
  EXPECT_EQ(lines(comparison.problems()),
            "gpus.count has type string, not integer\n"
            "gpus.count has no maximum\n"
            "gpus.min has no description\n"
            "gpus.max is not in the schema\n"
            "gpus.most is in the schema and not in C++\n"
            "gpus.min is required by the schema alone\n");
}

struct KindNames {
  const char* kind;
  const char* plural;
  const char* short_name;
  const char* scope;
};

constexpr KindNames kKinds[] = {{TrainingJob::kKind, TrainingJob::kPlural, "tj", "Namespaced"},
                                {PlacementPolicy::kKind, PlacementPolicy::kPlural, "ppol", "Cluster"},
                                {GPUPool::kKind, GPUPool::kPlural, "gpool", "Cluster"}};

TEST(Crd, HasTheNamesThatPeopleType) {
  for (const KindNames& names : kKinds) {
    const json definition = crd::read_yaml(crd::crd_path(names.plural)).at(0);
    EXPECT_EQ(definition.at("metadata").at("name"), std::string(names.plural) + ".loadline.dev");
    const json& spec = definition.at("spec");
    EXPECT_EQ(spec.at("scope"), names.scope);
    EXPECT_EQ(spec.at("names").at("kind"), names.kind);
    EXPECT_EQ(spec.at("names").at("shortNames"), json::array({names.short_name}));
    EXPECT_EQ(spec.at("names").at("categories"), json::array({"training"}));
    EXPECT_TRUE(spec.at("versions").at(0).at("subresources").contains("status")) << names.kind;
  }
}

// Client-side apply keeps the whole object in an annotation, which ends at 256 KiB.
TEST(Crd, IsSmallEnoughForClientSideApply) {
  for (const KindNames& names : kKinds) {
    const auto path = std::filesystem::path(LOADLINE_SOURCE_DIR) / crd::crd_path(names.plural);
    EXPECT_LT(std::filesystem::file_size(path), 200U * 1024U) << names.kind;
  }
}

TEST(Crd, PrintsColumnsThatExist) {
  for (const KindNames& names : kKinds) {
    const json version = crd::read_yaml(crd::crd_path(names.plural)).at(0).at("spec").at("versions").at(0);
    const json object = crd::complete_object(names.kind, names.plural);
    for (const json& column : version.at("additionalPrinterColumns")) {
      std::string path = column.at("jsonPath");
      // The filters that we use pick one element of a list; any element has the field.
      for (std::size_t at = path.find("[?("); at != std::string::npos; at = path.find("[?(")) {
        path.replace(at, path.find(")]") + 2 - at, ".0");
      }
      std::replace(path.begin(), path.end(), '.', '/');
      if (path == "/metadata/creationTimestamp") continue;
      EXPECT_TRUE(object.contains(json::json_pointer(path))) << names.kind << " " << column.at("jsonPath");
    }
  }
}

// A default is visible to the user and stays in the object, so a new one deserves a second look.
TEST(Schema, HasOnlyTheDefaultsThatAreHarmless) {
  std::map<std::string, json> defaults;
  const std::function<void(const json&, const std::string&)> walk = [&](const json& schema, const std::string& path) {
    if (schema.contains("default")) defaults[path] = schema.at("default");
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, property] : properties.items()) {
      walk(property, path + "." + name);
    }
  };
  for (const KindNames& names : kKinds) walk(schema_of(names.plural), names.short_name);
  const std::map<std::string, json> expected{{"tj.spec.training.framework", "generic"},
                                             {"tj.spec.training.method", "full"},
                                             {"tj.spec.training.objective", "sft"},
                                             {"tj.spec.training.precision", "bf16-mixed"},
                                             {"tj.spec.training.optimizer", "adamw"},
                                             {"tj.spec.launcher", "torchrun"},
                                             {"ppol.spec.precedence", 0},
                                             {"ppol.spec.objective.type", "Cost"},
                                             {"ppol.spec.mode", "Enforce"},
                                             {"gpool.spec.gpu.resourceName", "nvidia.com/gpu"},
                                             {"gpool.spec.price.currency", "USD"}};
  EXPECT_EQ(defaults, expected);
}

}  // namespace
}  // namespace loadline::api
