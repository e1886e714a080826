// What the API server, or the way to it, answered instead of a result. An ApiError is an Error, so
// `return answer.error();` fits any Result<T> above this layer; below, the HTTP facts stay readable.
//
// Thread-safety: plain values.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace loadline::kube {

/// A failed request. `fields` (of Error) holds status.details.causes when the server named fields.
struct ApiError : Error {
  int http_status = 0;  ///< 0 when no answer came (connect, TLS, deadline, cancel)
  std::string
      reason;  ///< metav1.Status reason: "AlreadyExists", "Conflict", "Expired"; ours below when http_status is 0
  std::optional<std::chrono::seconds> retry_after;  ///< from the Retry-After header or details.retryAfterSeconds
  bool transient = false;                           ///< the same request may succeed later
  /// The server may have carried the request out although no success was seen. True for a lost answer and for 5xx, with
  /// Retry-After too (etcd may have answered the API server too late): look before writing again.
  bool outcome_unknown = false;
  /// The server does not know the version that was asked for yet or, restored from a backup, any more.
  bool version_too_new = false;

  [[nodiscard]] bool already_exists() const { return reason == "AlreadyExists"; }
  /// The version written against was not the newest; not an AlreadyExists.
  [[nodiscard]] bool conflict() const { return http_status == 409 && !already_exists(); }
  [[nodiscard]] bool not_found() const { return http_status == 404; }
  /// 410, as HTTP status or as Status in a stream: the version or continue token is gone, list again.
  [[nodiscard]] bool expired() const { return http_status == 410; }
  /// An object in the server's own store cannot be read; a watch cannot get past the version at which it was removed.
  [[nodiscard]] bool unreadable() const { return reason == "StoreReadError"; }
  [[nodiscard]] bool canceled() const { return reason == kCanceled; }

  static constexpr std::string_view kCanceled = "Canceled";            ///< we asked it to stop
  static constexpr std::string_view kTimeout = "DeadlineExceeded";     ///< our total deadline ran out
  static constexpr std::string_view kConnection = "ConnectionFailed";  ///< resolve, connect, TLS, reset
  static constexpr std::string_view kBadAnswer = "BadAnswer";          ///< not HTTP, not JSON, a redirect, too deep

  /// A failure without an answer. Transient for kTimeout and kConnection.
  [[nodiscard]] static ApiError transport(std::string_view reason, std::string message);
  /// An answer of status >= 300. Reads a metav1.Status body when it is one and any other text otherwise.
  [[nodiscard]] static ApiError from_response(int http_status, std::string_view body,
                                              std::optional<std::chrono::seconds> retry_after = std::nullopt);
};

/// What a call to the API server gives back.
template <class T>
using Answer = Result<T, ApiError>;

}  // namespace loadline::kube
