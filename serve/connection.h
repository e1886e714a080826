// One connection, from the TLS handshake to its close, as a coroutine: read a request, answer it, again. Internal to
// serve/.
//
// Thread-safety: everything of one Connection happens on its strand; Core is shared by all.
// Ownership: the coroutine owns the Connection; Core must outlive both, and destroys `io`, and with it what is still
// suspended, first.
// Errors: none leave the coroutine. A peer's fault ends its connection and is counted.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "serve/executor.h"
#include "serve/server.h"
#include "serve/server_metrics.h"

namespace loadline::serve {

struct Connection {
  boost::asio::any_io_executor strand;
  std::function<void()> close;    ///< on the strand only
  bool between_requests = false;  ///< on the strand only: nothing is lost by closing now

  std::optional<std::chrono::steady_clock::time_point> idle_since;  ///< guarded by Core::mutex: its place may be given
                                                                    ///< to a newcomer
  bool leaving = false;  ///< guarded by Core::mutex: it was, and the connection is closed in a moment
};

/// What the connections of one server share.
struct Core {
  Core(ServerOptions server_options, std::vector<Route> server_routes)
      : options(std::move(server_options)),
        routes(std::move(server_routes)),
        metrics(options.name, options.metrics),
        workers(options.workers, options.waiting) {}

  /// Lets `connection` be closed for a newcomer, until keep_place().
  void offer_place(Connection& connection);
  /// False when its place has been given away.
  [[nodiscard]] bool keep_place(Connection& connection);
  /// Whether one more connection may be opened. When there are too many, the one that is idle for the longest goes.
  [[nodiscard]] bool make_room();

  const ServerOptions options;
  const std::vector<Route> routes;
  ServerMetrics metrics;
  std::atomic<bool> draining{false};           ///< each answer is a connection's last
  std::atomic<bool> stopping{false};           ///< no further request is waited for
  std::atomic<std::uint64_t> bodies_bytes{0};  ///< declared by requests being read or answered

  std::mutex mutex;
  std::condition_variable changed;
  std::unordered_set<std::shared_ptr<Connection>> open;  ///< guarded by mutex

  BoundedExecutor workers;
  boost::asio::io_context io;
};

/// Counts a connection as open for as long as it lives.
class Registered {
 public:
  Registered(Core& core, boost::asio::any_io_executor strand);
  ~Registered();
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  [[nodiscard]] Connection& connection() const { return *connection_; }

 private:
  Core& core_;
  std::shared_ptr<Connection> connection_;
};

/// Serves `socket` until it ends.
[[nodiscard]] boost::asio::awaitable<void> serve_connection(Core& core, std::unique_ptr<Registered> registered,
                                                            boost::asio::ip::tcp::socket socket);

}  // namespace loadline::serve
