#include "kube/error.h"

#include <array>
#include <nlohmann/json.hpp>

#include "kube/json_read.h"

namespace loadline::kube {
namespace {

Error::Code code_of(int http_status) {
  switch (http_status) {
    case 400:
    case 405:
    case 413:
    case 415:
    case 422: return Error::Code::Invalid;
    case 401:
    case 403: return Error::Code::Forbidden;
    case 404: return Error::Code::NotFound;
    case 409: return Error::Code::Conflict;
    default: break;
  }
  if (http_status == 408 || http_status == 410 || http_status == 429 || http_status >= 500)
    return Error::Code::Unavailable;
  return Error::Code::Internal;
}

struct CauseType {
  std::string_view reason;
  FieldError::Type type;
};

// k8s.io/apimachinery pkg/apis/meta/v1 types.go, CauseType.
constexpr std::array<CauseType, 6> kCauseTypes{{{"FieldValueRequired", FieldError::Type::Required},
                                                {"FieldValueForbidden", FieldError::Type::Forbidden},
                                                {"FieldValueDuplicate", FieldError::Type::Duplicate},
                                                {"FieldValueNotSupported", FieldError::Type::NotSupported},
                                                {"FieldValueTooLong", FieldError::Type::TooLarge},
                                                {"FieldValueTooMany", FieldError::Type::TooLarge}}};

FieldError::Type cause_type(std::string_view reason) {
  for (const CauseType& cause : kCauseTypes) {
    if (cause.reason == reason) return cause.type;
  }
  return FieldError::Type::Invalid;
}

void read_status(const nlohmann::json& status, ApiError& error) {
  if (const auto message = string_at(status, {"message"}); message && !message->empty()) error.message = *message;
  if (const auto reason = string_at(status, {"reason"})) error.reason = *reason;
  if (const auto seconds = int_at(status, {"details", "retryAfterSeconds"});
      seconds && *seconds > 0 && !error.retry_after) {
    error.retry_after = std::chrono::seconds(std::min<std::int64_t>(*seconds, 3600));
  }
  for (const nlohmann::json& cause : array_at(status, {"details", "causes"})) {
    if (string_at(cause, {"reason"}) == "ResourceVersionTooLarge") error.version_too_new = true;
    const auto field = string_at(cause, {"field"});
    if (!field) continue;
    error.fields.push_back({cause_type(string_at(cause, {"reason"}).value_or("")), std::string(*field), "",
                            std::string(string_at(cause, {"message"}).value_or(""))});
  }
}

}  // namespace

ApiError ApiError::transport(std::string_view reason, std::string message) {
  ApiError error;
  error.code = Code::Unavailable;
  error.message = std::move(message);
  error.reason = reason;
  error.transient = reason == kTimeout || reason == kConnection;
  error.outcome_unknown = true;
  return error;
}

ApiError ApiError::from_response(int http_status, std::string_view body,
                                 std::optional<std::chrono::seconds> retry_after) {
  ApiError error;
  error.code = code_of(http_status);
  error.http_status = http_status;
  error.retry_after = retry_after;
  const Result<nlohmann::json> status = parse_json(body);
  if (status && string_at(*status, {"kind"}) == "Status") {
    read_status(*status, error);
  } else if (!body.empty()) {
    error.message = cut_utf8(body, 512);
  }
  if (error.message.empty()) error.message = "HTTP status " + std::to_string(http_status);
  error.transient = http_status == 429 || http_status == 408 || http_status >= 500;
  error.outcome_unknown = http_status >= 500;
  return error;
}

}  // namespace loadline::kube
