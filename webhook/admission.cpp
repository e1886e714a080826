#include "webhook/admission.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "kube/json_read.h"
#include "webhook/base64.h"

namespace loadline::webhook {
namespace {

using nlohmann::json;

constexpr std::size_t kWarningBytes = 256;    ///< longer ones may be cut by the API server
constexpr std::size_t kWarningsBytes = 4000;  ///< of its 4096 for all; beyond it cuts and drops
constexpr std::size_t kMessageBytes = 8 << 10;
constexpr std::size_t kCauseBytes = 2 << 10;

constexpr std::array<std::pair<std::string_view, Operation>, 4> kOperations{{
    {"CREATE", Operation::Create},
    {"UPDATE", Operation::Update},
    {"DELETE", Operation::Delete},
    {"CONNECT", Operation::Connect},
}};

std::string text_at(const json& root, kube::JsonPath path) {
  return std::string(kube::string_at(root, path).value_or(std::string_view()));
}

const json* object_or_null(const json& request, std::string_view field) {
  const json* value = kube::json_at(request, {field});
  return value != nullptr && value->is_object() ? value : nullptr;
}

/// metav1.CauseType.
const char* cause_type(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::Required: return "FieldValueRequired";
    case FieldError::Type::Forbidden: return "FieldValueForbidden";
    case FieldError::Type::Duplicate: return "FieldValueDuplicate";
    case FieldError::Type::NotSupported: return "FieldValueNotSupported";
    case FieldError::Type::Invalid:
    case FieldError::Type::TooLarge: break;
  }
  return "FieldValueInvalid";
}

/// "Invalid value: 8: ...": kubectl puts the field before it.
std::string without_field(const FieldError& error) {
  const std::string text = to_string(error);
  return text.substr(std::min(text.size(), error.field.size() + 2));
}

std::string full_name(const Request& request, std::string_view type) {
  return std::string(type) + "." + request.group + " \"" + request.name + "\"";
}

std::string denial_message(const Request& request, const Verdict& verdict) {
  if (verdict.kind == Verdict::Kind::Fault) return verdict.message;
  std::vector<std::string> causes;
  for (const FieldError& cause : verdict.causes) causes.push_back(to_string(cause));
  return verdict.kind == Verdict::Kind::Forbidden
             ? full_name(request, request.resource) + " is forbidden: " + join(causes, "; ")
             : full_name(request, request.kind) + " is invalid: " + join(causes, "; ");
}

json denial(const Request& request, const Verdict& verdict) {
  static constexpr std::array<std::pair<int, const char*>, 4> kStatus{
      {{200, ""}, {422, "Invalid"}, {403, "Forbidden"}, {500, "InternalError"}}};
  const auto& [code, reason] = kStatus[static_cast<std::size_t>(verdict.kind)];
  json causes = json::array();
  for (const FieldError& cause : verdict.causes) {
    causes.push_back({{"reason", cause_type(cause.type)},
                      {"field", cause.field},
                      {"message", cut_utf8(without_field(cause), kCauseBytes)}});
  }
  return {{"status", "Failure"},
          {"code", code},
          {"reason", reason},
          {"message", cut_utf8(denial_message(request, verdict), kMessageBytes)},
          {"details", {{"name", request.name}, {"group", request.group}, {"kind", request.kind}, {"causes", causes}}}};
}

std::string one_header(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return cut_utf8(text, kWarningBytes);
}

json header_warnings(const std::vector<std::string>& warnings) {
  json lines = json::array();
  std::size_t bytes = 0;
  for (const std::string& warning : warnings) {
    std::string line = one_header(warning);
    bytes += line.size();
    if (bytes > kWarningsBytes) break;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

bool Request::deleting() const {
  const json* newest = object != nullptr ? object : old_object;
  return newest != nullptr && kube::string_at(*newest, {"metadata", "deletionTimestamp"}).has_value();
}

Result<Request> read_review(const json& review) {
  const auto wrong = [](const std::string& what) { return Error::make(Error::Code::Invalid, what); };
  if (text_at(review, {"apiVersion"}) != "admission.k8s.io/v1" || text_at(review, {"kind"}) != "AdmissionReview") {
    return wrong("not an AdmissionReview of admission.k8s.io/v1");
  }
  const json& body = kube::object_at(review, {"request"});
  Request request;
  request.uid = text_at(body, {"uid"});
  if (request.uid.empty()) return wrong("request.uid is missing");
  const std::string operation = text_at(body, {"operation"});
  const auto* const known =
      std::find_if(kOperations.begin(), kOperations.end(), [&](const auto& entry) { return entry.first == operation; });
  if (known == kOperations.end()) return wrong("request.operation is not one of CREATE, UPDATE, DELETE, CONNECT");
  request.operation = known->second;
  request.group = text_at(body, {"kind", "group"});
  request.kind = text_at(body, {"kind", "kind"});
  request.resource = text_at(body, {"resource", "resource"});
  request.subresource = text_at(body, {"subResource"});
  request.name = text_at(body, {"name"});
  request.namespaceName = text_at(body, {"namespace"});
  request.dry_run = kube::bool_at(body, {"dryRun"}).value_or(false);
  request.object = object_or_null(body, "object");
  request.old_object = object_or_null(body, "oldObject");
  return request;
}

std::string_view to_string(Verdict::Kind kind) {
  static constexpr std::array<std::string_view, 4> kWords{"allowed", "invalid", "forbidden", "fault"};
  return kWords[static_cast<std::size_t>(kind)];
}

json review_response(const Request& request, const Verdict& verdict) {
  json response = {{"uid", request.uid}, {"allowed", verdict.allowed()}};
  if (!verdict.allowed()) response["status"] = denial(request, verdict);
  if (!verdict.warnings.empty()) response["warnings"] = header_warnings(verdict.warnings);
  if (verdict.allowed() && !verdict.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = base64_encode(verdict.patch.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  return {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}};
}

}  // namespace loadline::webhook
