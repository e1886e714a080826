// An HTTP/1.1 server, with TLS or without, for a handful of routes: the admission webhook and the health ports.
// Made for a port that anybody in the cluster can reach: every step has a deadline, every input a limit, nothing a
// peer sends ends the process, and only known method and path pairs are read any further than their header.
//
//   auto registry = std::make_shared<prometheus::Registry>();
//   Server health({.name = "health", .listen = "0.0.0.0:8081", .metrics = registry},
//                 health_routes([] { return Readiness{true, ""}; }, registry));
//   if (Status started = health.start(); !started) return fail(started.error());
//   ...
//   health.stop(std::chrono::seconds(5));
//
// Thread-safety: all members from any thread; start() once. stop() must not come from a handler.
// Ownership: owns its threads and sockets. The certificate and the registry are shared with the caller.
// Errors: start() tells why it could not listen. Faults of single connections are counted, not reported.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/http.h"

namespace prometheus {
class Registry;
}

namespace loadline::serve {

class ServedCertificate;

struct Limits {
  std::chrono::milliseconds handshake = std::chrono::seconds(5);
  /// From the first byte of a request to its blank line; and to the first byte of a connection's first request.
  std::chrono::milliseconds header = std::chrono::seconds(5);
  std::chrono::milliseconds body = std::chrono::seconds(10);
  std::chrono::milliseconds handler = std::chrono::seconds(3);  ///< then 503; a handler that has begun runs on
  std::chrono::milliseconds write = std::chrono::seconds(10);
  /// Between requests. Longer than the 90 s after which Go clients close an idle connection themselves: a server that
  /// closes first can do so just as a request is on its way, and Go does not send a POST again.
  std::chrono::milliseconds idle = std::chrono::seconds(120);
  std::chrono::milliseconds linger = std::chrono::seconds(1);  ///< for a peer to read a refusal before the close
  std::uint32_t header_bytes = 32 * 1024;
  std::uint64_t body_bytes = 8ULL * 1024 * 1024;  ///< a review holds the old and the new object, 3 MiB each at most
  std::uint64_t all_bodies_bytes = 64ULL * 1024 * 1024;  ///< of all requests at a time; then 503
  std::size_t connections = 512;                         ///< further ones take an idle one's place, or are closed
};

struct ServerOptions {
  std::string name;                                  ///< label `server` of the metrics, and in log lines
  std::string listen;                                ///< "0.0.0.0:9443", "[::]:8081"; port 0: any free one
  std::shared_ptr<ServedCertificate> certificate{};  ///< null: plain HTTP
  std::shared_ptr<prometheus::Registry> metrics{};   ///< null: none
  std::size_t io_threads = 1;
  std::size_t workers = 1;
  std::size_t waiting = 64;  ///< requests that may wait for a worker
  Limits limits{};
};

class Server {
 public:
  Server(ServerOptions options, std::vector<Route> routes);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Binds and begins to serve.
  [[nodiscard]] Status start();
  /// The port listened on; 0 before start().
  [[nodiscard]] std::uint16_t port() const;
  /// Connections open now.
  [[nodiscard]] std::size_t connections() const;

  /// Goes on serving, but asks each peer to close after its answer, so that clients move to other replicas.
  void begin_drain();
  /// Stops accepting, closes idle connections, lets requests on their way finish for up to `deadline`, then closes
  /// the rest. True when none had to be cut off. Idempotent.
  bool stop(std::chrono::milliseconds deadline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loadline::serve
