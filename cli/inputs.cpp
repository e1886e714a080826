#include "cli/inputs.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>

#include "api/codec.h"
#include "api/json_member.h"
#include "api/names.h"
#include "base/text.h"
#include "cli/schema.h"
#include "placement/cluster_check.h"
#include "placement/inventory.h"
#include "placement/job_check.h"

namespace loadline::cli {
namespace {

using nlohmann::json;
using Type = FieldError::Type;

constexpr std::size_t kLongestName = 253;

std::string text_at(const json& object, const char* key) { return api::text(api::member(object, key)); }

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string name_of(const json& object) { return text_at(api::member(object, "metadata"), "name"); }

/// What the API server asks of every object's name; what a kind asks of it is in its schema.
std::vector<FieldError> name_errors(const json& object) {
  static const std::regex kForm("[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  const json& metadata = api::member(object, "metadata");
  const std::string name = name_of(object);
  if (!text_at(metadata, "generateName").empty()) return {};
  if (name.empty()) return {{Type::Required, "metadata.name", "", "must be given"}};
  if (name.size() <= kLongestName && std::regex_match(name, kForm)) return {};
  return {{Type::Invalid, "metadata.name", cut_utf8(name, 96),
           "must be at most " + std::to_string(kLongestName) +
               " lower case letters, digits, '-' and '.', and begin and "
               "end with a letter or digit"}};
}

/// Adds errors of fields about which nothing was said before: several rules may know of the same slip.
void add_news(std::vector<FieldError>& errors, const std::vector<FieldError>& more) {
  const std::size_t known = errors.size();
  for (const FieldError& error : more) {
    const auto said = [&](const FieldError& other) { return other.field == error.field; };
    const auto end = errors.begin() + static_cast<std::ptrdiff_t>(known);
    if (std::none_of(errors.begin(), end, said)) errors.push_back(error);
  }
}

/// The object as it was read; nothing, and a complaint with all its errors, when there are any. `rules` are those of
/// admission.
template <class T>
std::optional<T> judged(Result<T> parsed, const std::vector<FieldError>& rules, const Manifest& manifest,
                        std::vector<std::string>& complaints) {
  std::vector<FieldError> errors = parsed ? std::vector<FieldError>{} : parsed.error().fields;
  add_news(errors, rules);
  add_news(errors, schema_errors(T::kKind, manifest.object));
  add_news(errors, name_errors(manifest.object));
  if (parsed && errors.empty()) return *std::move(parsed);
  const Error error = errors.empty() ? parsed.error() : Error::invalid(std::move(errors));
  complaints.push_back(invalid_text(manifest.source, T::kKind, name_of(manifest.object), error));
  return std::nullopt;
}

void note_unused(const Manifest& manifest, const std::string& kind, Inputs& inputs) {
  for (const std::string& note : placement::unused_fields(kind, manifest.object)) {
    inputs.warnings.push_back(manifest.source + ": " + kind + " \"" + name_of(manifest.object) + "\": " + note);
  }
}

/// Whether the object is one of ours to judge; a complaint when it only looks like one.
bool is_ours(const Manifest& manifest, std::vector<std::string>& complaints) {
  static constexpr std::array<const char*, 3> kKinds{api::TrainingJob::kKind, api::GPUPool::kKind,
                                                     api::PlacementPolicy::kKind};
  const std::string version = text_at(manifest.object, "apiVersion");
  const std::string kind = text_at(manifest.object, "kind");
  const bool our_kind = std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
  const auto complain = [&](const FieldError& error) {
    complaints.push_back(manifest.source + ": " + to_string(error));
    return false;
  };
  if (!our_kind && version.starts_with(std::string(api::kGroup) + "/")) {
    return complain({Type::NotSupported, "kind", quoted(kind),
                     "supported values: " + quoted(kKinds[0]) + ", " + quoted(kKinds[1]) + ", " + quoted(kKinds[2])});
  }
  if (!our_kind || version == api::kApiVersion) return our_kind;
  if (version.empty()) return complain({Type::Required, "apiVersion", "", "must be " + quoted(api::kApiVersion)});
  return complain({Type::NotSupported, "apiVersion", quoted(version), "supported values: " + quoted(api::kApiVersion)});
}

void take_ours(const Manifest& manifest, const std::string& kind, Inputs& inputs,
               std::vector<std::string>& complaints) {
  const json& object = manifest.object;
  const auto unknown = api::UnknownFields::Reject;
  if (kind == api::TrainingJob::kKind) {
    auto job = judged(api::parse_training_job(object, unknown), placement::check_job(object), manifest, complaints);
    if (job) inputs.jobs.push_back({manifest.source, *std::move(job)});
    return;
  }
  note_unused(manifest, kind, inputs);
  if (kind == api::GPUPool::kKind) {
    auto pool = judged(api::parse_gpu_pool(object, unknown), placement::pool_errors(object), manifest, complaints);
    if (pool) inputs.pools.push_back(*std::move(pool));
  } else {
    auto policy =
        judged(api::parse_placement_policy(object, unknown), placement::policy_errors(object), manifest, complaints);
    if (policy) inputs.policies.push_back(*std::move(policy));
  }
}

void take(const Manifest& manifest, Inputs& inputs, std::vector<std::string>& complaints) {
  const std::string kind = text_at(manifest.object, "kind");
  if (kind == "Node") {
    inputs.nodes.push_back(placement::node_facts(manifest.object));
  } else if (kind == "Pod") {
    inputs.pods.push_back(placement::pod_facts(manifest.object));
  } else if (is_ours(manifest, complaints)) {
    take_ours(manifest, kind, inputs, complaints);
  }
}

/// "1 ConfigMap, 2 GPUPool", or "nothing".
std::string kinds_found(const std::vector<Manifest>& manifests) {
  std::map<std::string, int> counts;
  for (const Manifest& manifest : manifests) ++counts[text_at(manifest.object, "kind")];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [kind, count] : counts) parts.push_back(std::to_string(count) + " " + kind);
  return parts.empty() ? "nothing" : join(parts, ", ");
}

}  // namespace

std::string invalid_text(const std::string& source, const std::string& kind, const std::string& name,
                         const Error& error) {
  std::string text = source.empty() ? "" : source + ": ";
  text += kind + " \"" + name + "\" is invalid:";
  if (error.fields.empty()) return text + " " + error.message;
  for (const FieldError& field : error.fields) text += "\n* " + to_string(field);
  return text;
}

Result<Inputs> inputs_from(const std::vector<Manifest>& manifests) {
  Inputs inputs;
  std::vector<std::string> complaints;
  for (const Manifest& manifest : manifests) take(manifest, inputs, complaints);
  if (!complaints.empty()) return Error::make(Error::Code::Invalid, join(complaints, "\n"));
  if (inputs.jobs.empty()) {
    return Error::make(Error::Code::Invalid, std::string("no TrainingJob (apiVersion ") + api::kApiVersion +
                                                 ") in what -f names; there is " + kinds_found(manifests));
  }
  return inputs;
}

}  // namespace loadline::cli
