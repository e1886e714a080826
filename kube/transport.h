// The one narrow way to the API server. Everything above speaks in Requests, Responses and watch lines;
// which HTTP library carries them is the implementation's secret (cpprest_transport.h in programs, a
// scripted one in tests).
//
// Thread-safety: a Transport may be used from any thread. A WatchStream is read by one thread; cancel()
// may come from any.
// Ownership: a WatchStream outlives neither its Transport nor its reader.
// Errors: values. No implementation lets an exception out.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "kube/error.h"

namespace loadline::kube {

enum class Method { Get, Post, Put, Patch, Delete };
[[nodiscard]] std::string_view to_string(Method method);

struct Request {
  Method method = Method::Get;
  std::string target = {};        ///< path and query, percent-encoded: "/api/v1/pods?limit=500"
  std::string content_type = {};  ///< of `body`; empty without one
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers;  ///< beside authorization, which the transport adds
};

struct Response {
  int status = 0;
  std::string body;
  std::map<std::string, std::string> headers;  ///< names in lower case

  /// The Retry-After header when it is a number of seconds.
  [[nodiscard]] std::optional<std::chrono::seconds> retry_after() const;
};

/// What reading a watch gave.
struct WatchRead {
  enum class Kind {
    Line,     ///< `line` is one event, without its line break
    Timeout,  ///< nothing came within the wait; the stream goes on
    End,      ///< the server closed cleanly, or cancel() was called
    Failed,   ///< `error` says why: an HTTP status, an idle connection, a reset
  };
  Kind kind = Kind::End;
  std::string line;
  ApiError error;
  bool answered = true;  ///< of a Timeout: whether the server has answered at all; until then the stream says nothing
};

/// An open watch. Destroying it cancels and waits for the connection to be given up, briefly.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  /// Blocks until something comes, at most `wait`. After End or Failed it stays so.
  [[nodiscard]] virtual WatchRead read(std::chrono::milliseconds wait) = 0;
  /// Ends the stream at once, also under a reader. Idempotent.
  virtual void cancel() noexcept = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Sends and waits. Any HTTP answer is a Response, 4xx and 5xx too; an ApiError means that there was none.
  /// `timeout` is total: resolve, connect, send and the last byte of the answer. A request that `stop` ends
  /// gives reason Canceled.
  [[nodiscard]] virtual Answer<Response> send(Request request, std::chrono::milliseconds timeout,
                                              std::stop_token stop) = 0;
  /// Opens a watch and returns without waiting for the server; the outcome shows at the first read. When nothing at
  /// all arrives for `idle`, or no answer begins for 30 s, the stream fails.
  [[nodiscard]] virtual std::unique_ptr<WatchStream> open_watch(Request request, std::chrono::milliseconds idle) = 0;
};

}  // namespace loadline::kube
