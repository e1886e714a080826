#include "api/codec.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/names.h"
#include "api/reader.h"
#include "api/writer.h"

namespace loadline::api {
namespace {

using nlohmann::json;

// A wrong apiVersion or kind makes every other message misleading, so it is judged first and alone. Items of a list
// may come without both.
std::vector<FieldError> wrong_kind(const json& object, const char* kind) {
  std::vector<FieldError> errors;
  const auto expect = [&](const char* field, const char* wanted) {
    const auto found = object.find(field);
    if (found == object.end() || *found == wanted) return;
    errors.push_back({FieldError::Type::NotSupported, field, value_text(*found),
                      std::string("supported values: \"") + wanted + "\""});
  };
  expect("apiVersion", kApiVersion);
  expect("kind", kind);
  return errors;
}

template <class Kind>
Result<Kind> parse(const json& object, UnknownFields unknown) {
  if (object.is_object()) {
    if (auto errors = wrong_kind(object, Kind::kKind); !errors.empty()) return Error::invalid(std::move(errors));
  }
  Reader reader(unknown);
  Kind out;
  reader.read(object, out);
  if (auto errors = std::move(reader).take_errors(); !errors.empty()) return Error::invalid(std::move(errors));
  return out;
}

template <class Kind>
json whole(const Kind& value) {
  json out = write(value);
  out["apiVersion"] = kApiVersion;
  out["kind"] = Kind::kKind;
  if (out["metadata"].empty()) out.erase("metadata");
  if (out["status"].empty()) out.erase("status");
  return out;
}

}  // namespace

Result<TrainingJob> parse_training_job(const json& object, UnknownFields unknown) {
  return parse<TrainingJob>(object, unknown);
}
Result<PlacementPolicy> parse_placement_policy(const json& object, UnknownFields unknown) {
  return parse<PlacementPolicy>(object, unknown);
}
Result<GPUPool> parse_gpu_pool(const json& object, UnknownFields unknown) { return parse<GPUPool>(object, unknown); }

json to_json(const TrainingJob& job) { return whole(job); }
json to_json(const PlacementPolicy& policy) { return whole(policy); }
json to_json(const GPUPool& pool) { return whole(pool); }
json to_json(const TrainingJobStatus& status) { return write(status); }
json to_json(const PlacementPolicyStatus& status) { return write(status); }
json to_json(const GPUPoolStatus& status) { return write(status); }

}  // namespace loadline::api
