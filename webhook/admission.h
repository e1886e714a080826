// The AdmissionReview envelope (admission.k8s.io/v1): what the API server asks, and how an answer is worded so that
// kubectl prints it well.
//
// Thread-safety: plain values; pure functions.
// Ownership: a Request points into the review it was read from.
// Errors: a review that is none is Code::Invalid; the object inside is not judged here.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace loadline::webhook {

enum class Operation { Create, Update, Delete, Connect };

struct Request {
  std::string uid;
  Operation operation = Operation::Create;
  std::string group, kind;          ///< as registered, not as the user sent it
  std::string resource;             ///< "trainingjobs"
  std::string subresource;          ///< empty for the object itself
  std::string name, namespaceName;  ///< empty name: the API server will generate one
  bool dry_run = false;
  const nlohmann::json* object = nullptr;      ///< null on Delete
  const nlohmann::json* old_object = nullptr;  ///< null on Create

  /// Somebody asked for the object's deletion; it stays until its finalizers are gone.
  [[nodiscard]] bool deleting() const;
};

[[nodiscard]] Result<Request> read_review(const nlohmann::json& review);

/// What is said of a request.
struct Verdict {
  enum class Kind {
    Allowed,
    Invalid,    ///< 422: the object is wrong, each cause names a field
    Forbidden,  ///< 403: the object is right and a policy is against it
    Fault,      ///< 500: we could not judge
  };
  Kind kind = Kind::Allowed;
  std::vector<FieldError> causes;
  std::string message;                ///< Fault only
  std::vector<std::string> warnings;  ///< printed by kubectl whatever the verdict
  nlohmann::json patch;               ///< RFC 6902 operations; null or empty for none

  [[nodiscard]] bool allowed() const { return kind == Kind::Allowed; }
};

/// The word for metrics and logs: "allowed", "invalid", "forbidden", "fault".
[[nodiscard]] std::string_view to_string(Verdict::Kind kind);

/// The whole AdmissionReview to send back. Warnings are made fit for headers: no control characters, at most 256
/// bytes each, all together within the API server's budget.
[[nodiscard]] nlohmann::json review_response(const Request& request, const Verdict& verdict);

}  // namespace loadline::webhook
