#include "webhook/defaults.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kube/json_read.h"

namespace loadline::webhook {
namespace {

using nlohmann::json;

struct Field {
  std::vector<std::string> path;  ///< from the job's spec
  json value;
};

/// What the architecture leaves out and implies.
std::vector<Field> implied(const json& spec) {
  const json* architecture = kube::json_at(spec, {"model", "architecture"});
  if (architecture == nullptr || !architecture->is_object()) return {};
  const auto heads = kube::int_at(*architecture, {"heads"});
  const auto hidden = kube::int_at(*architecture, {"hidden"});
  std::vector<Field> fields;
  if (!heads || *heads < 1) return {};
  if (!architecture->contains("kvHeads")) fields.push_back({{"model", "architecture", "kvHeads"}, *heads});
  if (!architecture->contains("headDim") && hidden && *hidden >= *heads && *hidden % *heads == 0) {
    fields.push_back({{"model", "architecture", "headDim"}, *hidden / *heads});
  }
  return fields;
}

const json* at(const json& root, const std::vector<std::string>& path) {
  const json* value = &root;
  for (const std::string& step : path) {
    value = kube::json_at(*value, {step});
    if (value == nullptr) return nullptr;
  }
  return value;
}

}  // namespace

json computed_defaults(const json& job, const json* old) {
  json patch = json::array();
  for (Field& field : implied(kube::object_at(job, {"spec"}))) {
    if (old != nullptr && at(kube::object_at(*old, {"spec"}), field.path) == nullptr) continue;
    field.path.insert(field.path.begin(), "spec");
    patch.push_back({{"op", "add"}, {"path", json_pointer(field.path)}, {"value", std::move(field.value)}});
  }
  return patch;
}

json with_defaults(json spec) {
  if (!spec.is_object()) return spec;
  for (const Field& field : implied(spec)) spec[json::json_pointer(json_pointer(field.path))] = field.value;
  return spec;
}

std::string json_pointer(const std::vector<std::string>& path) {
  std::string pointer;
  for (const std::string& step : path) {
    pointer += '/';
    for (const char c : step) {
      if (c == '~') {
        pointer += "~0";
      } else if (c == '/') {
        pointer += "~1";
      } else {
        pointer += c;
      }
    }
  }
  return pointer;
}

}  // namespace loadline::webhook
