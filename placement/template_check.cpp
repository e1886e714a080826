// Rules on spec.template. The API server would find these faults too, but only when an attempt's pods are made, and
// then again at each try.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "api/json_member.h"
#include "api/names.h"
#include "base/text.h"
#include "placement/facts.h"
#include "placement/job_check.h"

namespace loadline::placement {
namespace {

using api::list_member;
using api::member;
using api::object_member;
using nlohmann::json;
using Type = FieldError::Type;

const std::string kPath = "spec.template";

/// Fields of the pod that an attempt sets, and the only value a user may write there; empty: none.
struct OwnedField {
  const char *field, *allowed, *why;
};
constexpr std::array<OwnedField, 6> kOwnedFields{{
    {"restartPolicy", "Never", "Loadline restarts the whole gang; leave it out or say Never"},
    {"nodeName", "", "it would go around the scheduler; use spec.placement"},
    {"hostname", "", "the gang's members find each other by the names Loadline gives them"},
    {"subdomain", "", "the gang's members find each other by the names Loadline gives them"},
    {"activeDeadlineSeconds", "", "it would count per attempt; use spec.activeDeadlineSeconds"},
    {"schedulingGates", "", "the gang is started whole or not at all"},
}};

/// A part of a GPU: a MIG profile, or a share in time.
bool is_slice(std::string_view resource) { return is_gpu(resource) && !std::string_view(resource).ends_with("/gpu"); }

/// A quantity as typed, number or text; nothing for anything else.
std::optional<std::string> quantity_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

std::string container_path(std::string_view list, std::size_t index) {
  return kPath + ".spec." + std::string(list) + "[" + std::to_string(index) + "]";
}

constexpr const char* kUnplanned =
    " is the scheduler's alone: a pool is chosen without it, and an attempt whose pods cannot start there ends after "
    "the "
    "start deadline";

const json& containers_of(const json& pod_template) { return list_member(member(pod_template, "spec"), "containers"); }

class TemplateCheck {
 public:
  explicit TemplateCheck(const json& pod_template) : pod_template_(pod_template) {}

  std::vector<FieldError> errors() && {
    if (!pod_template_.is_object()) {
      refuse(Type::Required, kPath, "", "a pod template with a container named trainer");
      return std::move(errors_);
    }
    check_outside_pod();
    check_owned_fields();
    const std::optional<std::size_t> trainer = check_trainer();
    check_gpus("containers", trainer);
    check_gpus("initContainers", std::nullopt);
    return std::move(errors_);
  }

 private:
  void refuse(Type type, std::string field, std::string value, std::string detail) {
    errors_.push_back({type, std::move(field), std::move(value), std::move(detail)});
  }
  const json& pod() const { return object_member(pod_template_, "spec"); }

  void check_outside_pod() {
    for (const auto& [field, value] : pod_template_.items()) {
      if (field == "metadata" || field == "spec" || field == "apiVersion" || field == "kind") continue;
      refuse(Type::Forbidden, kPath + "." + field, value.is_primitive() ? value.dump() : "",
             "a template has metadata and spec; the Job of an attempt is Loadline's to write");
    }
  }

  void check_owned_fields() {
    for (const OwnedField& owned : kOwnedFields) {
      const json& value = member(pod(), owned.field);
      if (value.is_null() || (*owned.allowed != '\0' && value == owned.allowed)) continue;
      refuse(Type::Forbidden, kPath + ".spec." + owned.field, quantity_text(value).value_or(""), owned.why);
    }
  }

  /// The container Loadline completes: the one named trainer, or the only one.
  std::optional<std::size_t> check_trainer() {
    if (const auto trainer = trainer_index(pod_template_)) return trainer;
    const json& containers = list_member(pod(), "containers");
    refuse(Type::Required, kPath + ".spec.containers", "",
           containers.empty() ? "at least the container that trains"
                              : "one of the containers must be named trainer: it is the one Loadline completes");
    return std::nullopt;
  }

  void check_gpus(const char* list, std::optional<std::size_t> trainer) {
    const json& containers = list_member(pod(), list);
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const json& resources = member(containers[i], "resources");
      const json& limits = object_member(resources, "limits");
      const json& requests = object_member(resources, "requests");
      const std::string path = container_path(list, i) + ".resources";
      const bool may_have_gpus = trainer == i;
      for (const auto& [resource, amount] : limits.items()) {
        if (is_slice(resource)) {
          refuse(Type::Forbidden, path + ".limits[" + resource + "]", quantity_text(amount).value_or(""),
                 "a gang has whole GPUs; leave it out and say spec.gpus");
        } else if (is_gpu(resource))
          check_amount(path + ".limits[" + resource + "]", amount, may_have_gpus);
      }
      for (const auto& [resource, amount] : requests.items()) {
        if (!is_gpu(resource) || is_slice(resource)) continue;
        check_amount(path + ".requests[" + resource + "]", amount, may_have_gpus);
        check_equal(path, resource, amount, limits);
      }
    }
  }

  void check_amount(const std::string& field, const json& amount, bool may_have_gpus) {
    const auto typed = quantity_text(amount);
    const auto thousandths = typed ? parse_quantity_milli(*typed) : std::nullopt;
    if (!thousandths || *thousandths < 0) {
      refuse(Type::Invalid, field, typed.value_or(amount.dump()), "must be a whole number of GPUs");
    } else if (*thousandths % 1000 != 0) {
      refuse(Type::Invalid, field, *typed, "whole GPUs only");
    } else if (*thousandths > 0 && !may_have_gpus) {
      refuse(Type::Forbidden, field, *typed,
             "only the trainer has GPUs: those of another container would be taken from each node of the gang");
    }
  }

  void check_equal(const std::string& path, const std::string& resource, const json& request, const json& limits) {
    const auto requested = quantity_text(request);
    const auto limit = limits.find(resource);
    if (limit == limits.end()) {
      refuse(Type::Required, path + ".limits[" + resource + "]", "",
             "GPUs need a limit, equal to the request " + requested.value_or(""));
      return;
    }
    const auto limited = quantity_text(*limit);
    if (!requested || !limited) return;
    if (parse_quantity_milli(*requested) != parse_quantity_milli(*limited)) {
      refuse(Type::Invalid, path + ".requests[" + resource + "]", *requested, "must equal the limit " + *limited);
    }
  }

  const json& pod_template_;
  std::vector<FieldError> errors_;
};

}  // namespace

std::optional<std::size_t> trainer_index(const json& pod_template) {
  const json& containers = containers_of(pod_template);
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (!containers[i].is_object()) return std::nullopt;
    if (member(containers[i], "name") == api::kTrainerContainer) return i;
  }
  return containers.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;
}

bool names_command(const json& pod_template) {
  const auto trainer = trainer_index(pod_template);
  if (!trainer) return false;
  const json& containers = containers_of(pod_template);
  return !list_member(containers[*trainer], "command").empty();
}

std::vector<FieldError> check_template(const json& pod_template) { return TemplateCheck(pod_template).errors(); }

std::vector<std::string> template_notes(const json& pod_template) {
  std::vector<std::string> notes;
  const json& containers = containers_of(pod_template);
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const json& limits = object_member(member(containers[i], "resources"), "limits");
    for (const auto& [resource, amount] : limits.items()) {
      const auto typed = quantity_text(amount);
      if (!is_gpu(resource) || !typed) continue;
      notes.push_back(container_path("containers", i) + ".resources.limits[" + resource + "] " + *typed +
                      " will be what the layout needs per node; spec.gpus says how many the gang has");
    }
  }
  const json& spec = member(pod_template, "spec");
  for (const char* field : {"podAffinity", "podAntiAffinity"}) {
    if (!member(member(member(spec, "affinity"), field), "requiredDuringSchedulingIgnoredDuringExecution").empty()) {
      notes.push_back(kPath + ".spec.affinity." + field + kUnplanned);
    }
  }
  if (!list_member(spec, "topologySpreadConstraints").empty()) {
    notes.push_back(kPath + ".spec.topologySpreadConstraints" + kUnplanned);
  }
  return notes;
}

}  // namespace loadline::placement
