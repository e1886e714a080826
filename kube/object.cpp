#include "kube/object.h"

#include <nlohmann/json.hpp>

namespace loadline::kube {
namespace {

const nlohmann::json kNoDocument;
const ObjectKey kNoKey;
const std::string kNoText;

std::string text_at(const nlohmann::json& document, JsonPath path) {
  return std::string(string_at(document, path).value_or(""));
}

}  // namespace

struct Object::Data {
  nlohmann::json document;
  ObjectKey key;
  std::string uid;
  std::string resource_version;
  std::string kind;
};

std::string to_string(const ObjectKey& key) { return key.ns.empty() ? key.name : key.ns + "/" + key.name; }

Object::Object(nlohmann::json document) {
  auto data = std::make_shared<Data>();
  data->key = {text_at(document, {"metadata", "namespace"}), text_at(document, {"metadata", "name"})};
  data->uid = text_at(document, {"metadata", "uid"});
  data->resource_version = text_at(document, {"metadata", "resourceVersion"});
  data->kind = text_at(document, {"kind"});
  data->document = std::move(document);
  data_ = std::move(data);
}

Result<Object> Object::parse(std::string_view text) {
  Result<nlohmann::json> document = parse_json(text);
  if (!document) return document.error();
  if (!document->is_object()) return Error::make(Error::Code::Invalid, "not a JSON object");
  return Object(std::move(*document));
}

const nlohmann::json& Object::json() const noexcept { return data_ ? data_->document : kNoDocument; }
const ObjectKey& Object::key() const noexcept { return data_ ? data_->key : kNoKey; }
const std::string& Object::uid() const noexcept { return data_ ? data_->uid : kNoText; }
const std::string& Object::resource_version() const noexcept { return data_ ? data_->resource_version : kNoText; }
const std::string& Object::kind() const noexcept { return data_ ? data_->kind : kNoText; }

std::int64_t Object::generation() const noexcept { return int_at(json(), {"metadata", "generation"}).value_or(0); }
std::optional<TimePoint> Object::created() const noexcept { return time_at(json(), {"metadata", "creationTimestamp"}); }
bool Object::deleting() const noexcept { return string_at(json(), {"metadata", "deletionTimestamp"}).has_value(); }
std::optional<TimePoint> Object::deletion_time() const noexcept {
  return time_at(json(), {"metadata", "deletionTimestamp"});
}
std::optional<std::string_view> Object::label(std::string_view key) const noexcept {
  return string_at(json(), {"metadata", "labels", key});
}
std::optional<std::string_view> Object::annotation(std::string_view key) const noexcept {
  return string_at(json(), {"metadata", "annotations", key});
}

bool Object::has_finalizer(std::string_view finalizer) const noexcept {
  for (const nlohmann::json& entry : array_at(json(), {"metadata", "finalizers"})) {
    if (string_at(entry, {}) == finalizer) return true;
  }
  return false;
}

std::vector<OwnerReference> Object::owners() const {
  std::vector<OwnerReference> out;
  for (const nlohmann::json& entry : array_at(json(), {"metadata", "ownerReferences"})) {
    out.push_back({text_at(entry, {"apiVersion"}), text_at(entry, {"kind"}), text_at(entry, {"name"}),
                   text_at(entry, {"uid"}), bool_at(entry, {"controller"}).value_or(false)});
  }
  return out;
}

std::optional<OwnerReference> Object::controller() const {
  for (OwnerReference& owner : owners()) {
    if (owner.controller) return std::move(owner);
  }
  return std::nullopt;
}

std::strong_ordering compare_versions(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return a.size() <=> b.size();
  return a.compare(b) <=> 0;
}

}  // namespace loadline::kube

std::size_t std::hash<loadline::kube::ObjectKey>::operator()(const loadline::kube::ObjectKey& key) const noexcept {
  const std::size_t ns = std::hash<std::string>{}(key.ns);
  return std::hash<std::string>{}(key.name) ^ (ns + 0x9e3779b97f4a7c15ULL + (ns << 6U) + (ns >> 2U));
}
