#include "cli/inputs.h"

#include "api/codec.h"
#include "api/names.h"
#include "base/text.h"
#include "placement/inventory.h"
#include "placement/policy.h"

namespace loadline::cli {
namespace {

using nlohmann::json;

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string name_of(const json& object) {
  const auto metadata = object.find("metadata");
  return metadata != object.end() && metadata->is_object() ? text_at(*metadata, "name") : "";
}

/// Keeps a parsed object, or its errors.
template <class T>
void keep(Result<T> parsed, std::vector<FieldError> problems, const Manifest& manifest, std::vector<T>& objects,
          std::vector<std::string>& complaints) {
  if (parsed && problems.empty()) {
    objects.push_back(*std::move(parsed));
    return;
  }
  const Error error = parsed ? Error::invalid(std::move(problems)) : parsed.error();
  complaints.push_back(invalid_text(manifest.source, T::kKind, name_of(manifest.object), error));
}

bool is_ours(const Manifest& manifest, std::vector<std::string>& complaints) {
  const std::string version = text_at(manifest.object, "apiVersion");
  if (version == api::kApiVersion) return true;
  if (version.starts_with(std::string(api::kGroup) + "/")) {
    complaints.push_back(manifest.source + ": apiVersion: Unsupported value: \"" + version + "\": must be \"" +
                         api::kApiVersion + "\"");
  }
  return false;
}

void take(const Manifest& manifest, Inputs& inputs, std::vector<std::string>& complaints) {
  const json& object = manifest.object;
  const std::string kind = text_at(object, "kind");
  const auto unknown = api::UnknownFields::Reject;
  if (kind == "Node") {
    inputs.nodes.push_back(placement::node_facts(object));
  } else if (kind == "Pod") {
    inputs.pods.push_back(placement::pod_facts(object));
  } else if (!is_ours(manifest, complaints)) {
    return;
  } else if (kind == api::TrainingJob::kKind) {
    keep(api::parse_training_job(object, unknown), {}, manifest, inputs.jobs, complaints);
  } else if (kind == api::GPUPool::kKind) {
    auto pool = api::parse_gpu_pool(object, unknown);
    auto problems = pool ? placement::check_pool(*pool) : std::vector<FieldError>{};
    keep(std::move(pool), std::move(problems), manifest, inputs.pools, complaints);
  } else if (kind == api::PlacementPolicy::kKind) {
    auto policy = api::parse_placement_policy(object, unknown);
    auto problems = policy ? placement::check_policy(*policy) : std::vector<FieldError>{};
    keep(std::move(policy), std::move(problems), manifest, inputs.policies, complaints);
  }
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
    return Error::make(Error::Code::Invalid,
                       std::string("no TrainingJob (apiVersion ") + api::kApiVersion + ") in what -f names");
  }
  return inputs;
}

}  // namespace loadline::cli
