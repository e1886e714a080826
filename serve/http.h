// What a handler sees of HTTP: one request in, one response out, all of it in memory.
//
// Thread-safety: plain values. A handler may run on several threads at once.
// Errors: a handler that throws is answered with 500 and logged; nothing else happens.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::serve {

enum class Method { Get, Post };
[[nodiscard]] constexpr std::string_view to_string(Method method) { return method == Method::Get ? "GET" : "POST"; }

struct Request {
  Method method = Method::Get;
  std::string path;          ///< without the query: the API server adds ?timeout=10s to what was registered
  std::string query;         ///< what followed the '?', as sent
  std::string content_type;  ///< as sent; empty when there is none
  std::string body;
};

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

using Handler = std::function<Response(const Request&)>;

/// Where a handler runs.
enum class Run {
  OnWorker,    ///< on the server's own bounded executor; when that is full the answer is 503
  OnIoThread,  ///< at once; only for what takes microseconds
};

struct Route {
  Method method = Method::Get;
  std::string path;  ///< matched whole
  Run run = Run::OnWorker;
  Handler handler;
};

}  // namespace loadline::serve
