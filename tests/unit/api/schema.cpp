#include "tests/unit/api/schema.h"

#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "cli/yaml.h"

namespace loadline::api::crd {

using nlohmann::json;

namespace {

// `seed` varies numbers and words.
json complete_value(const json& schema, int elements, int seed) {
  const std::string type = schema.at("type");
  if (type == "boolean") return seed % 2 == 0;
  if (type == "integer") return 7 + seed;
  if (type == "number") return 1.5 + seed;
  if (type == "string") {
    const auto words = schema.find("enum");
    if (words == schema.end()) return "text-" + std::to_string(seed);
    return words->at(static_cast<std::size_t>(seed) % words->size());
  }
  json out;
  if (type == "array") {
    for (int i = 0; i < elements; ++i) out.push_back(complete_value(schema.at("items"), elements, seed + i));
    return out;
  }
  out = json::object();
  if (const auto properties = schema.find("properties"); properties != schema.end()) {
    for (const auto& [name, property] : properties->items()) out[name] = complete_value(property, elements, seed);
  } else if (const auto values = schema.find("additionalProperties"); values != schema.end()) {
    out["example.com/key"] = complete_value(*values, elements, seed);
  } else {
    out["free"] = {{"form", json::array({1, nullptr, "x", {{"y", 2.5}}})}};
  }
  return out;
}

}  // namespace

std::vector<json> read_yaml(const std::string& path) {
  std::ifstream file(std::string(LOADLINE_SOURCE_DIR) + "/" + path);
  if (!file) throw std::runtime_error("cannot open " + path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto documents = cli::json_from_yaml(text, path);
  if (!documents.ok()) throw std::runtime_error(documents.error().message);
  return std::move(documents).value();
}

std::string crd_path(const std::string& plural) { return "crds/loadline.dev_" + plural + ".yaml"; }

const json& schema_of(const std::string& plural) {
  static std::map<std::string, json> known;
  json& schema = known[plural];
  if (!schema.is_null()) return schema;
  schema = read_yaml(crd_path(plural)).at(0).at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema");
  return schema;
}

json complete_object(const std::string& kind, const std::string& plural, int elements) {
  json object = complete_value(schema_of(plural), elements, 0);
  object["apiVersion"] = "loadline.dev/v1alpha1";
  object["kind"] = kind;
  object["metadata"] = {{"name", "x"}, {"uid", "u"}, {"labels", {{"a", "b"}}}, {"generation", 3}};
  return object;
}

}  // namespace loadline::api::crd
