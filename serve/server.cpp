#include "serve/server.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <charconv>
#include <exception>
#include <string_view>
#include <thread>
#include <utility>

#include "serve/accept.h"
#include "serve/connection.h"
#include "serve/tls.h"

namespace loadline::serve {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

/// "host:port" with an IP literal as host, IPv6 in brackets.
Result<tcp::endpoint> parse_endpoint(const std::string& text) {
  const auto wrong = [&text] {
    return Error::make(Error::Code::Invalid, "cannot listen on \"" + text + "\": want ADDRESS:PORT, as 0.0.0.0:9443");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong();
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, port_error] = std::from_chars(text.data() + colon + 1, end, port);
  error_code host_error;
  const auto address = net::ip::make_address(host, host_error);
  if (port_error != std::errc() || stopped != end || host_error) return wrong();
  return tcp::endpoint(address, port);
}

void log_fault(std::string_view where, const std::exception_ptr& fault) {
  try {
    if (fault) std::rethrow_exception(fault);
  } catch (const std::exception& error) {
    spdlog::error("{}: {}", where, error.what());
  } catch (...) {
    spdlog::error("{}: unknown exception", where);
  }
}

/// Runs `io` until it is stopped, whatever its handlers throw.
void run_io(net::io_context& io) {
  for (;;) {
    try {
      io.run();
      return;
    } catch (...) {
      log_fault("I/O thread", std::current_exception());
    }
  }
}

}  // namespace

struct Server::Impl {
  Impl(ServerOptions options, std::vector<Route> routes)
      : core(std::move(options), std::move(routes)),
        acceptor(net::make_strand(core.io)),
        work(core.io.get_executor()) {}

  void take(tcp::socket socket);
  /// Runs `action` for each open connection, on its strand.
  void for_each_connection(const std::function<void(Connection&)>& action);
  bool wait_until_closed(std::chrono::milliseconds time);

  Core core;
  tcp::acceptor acceptor;
  net::executor_work_guard<net::io_context::executor_type> work;
  std::atomic<std::uint16_t> port{0};
  std::mutex stop_mutex;
  std::vector<std::jthread> threads;
};

Server::Server(ServerOptions options, std::vector<Route> routes)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(routes))) {}

Server::~Server() { stop(std::chrono::milliseconds(0)); }

Status Server::start() {
  const std::string& listen = impl_->core.options.listen;
  const Result<tcp::endpoint> endpoint = parse_endpoint(listen);
  if (!endpoint) return endpoint.error();
  tcp::acceptor& acceptor = impl_->acceptor;
  try {
    acceptor.open(endpoint->protocol());
    acceptor.set_option(net::socket_base::reuse_address(true));
    acceptor.bind(*endpoint);
    acceptor.listen();
    impl_->port = acceptor.local_endpoint().port();
    net::co_spawn(
        acceptor.get_executor(),
        accept_connections(acceptor, impl_->core.io, [this](tcp::socket socket) { impl_->take(std::move(socket)); }),
        [](const std::exception_ptr& fault) { log_fault("accepting connections", fault); });
    for (std::size_t i = 0; i < impl_->core.options.io_threads; ++i) {
      impl_->threads.emplace_back([this] { run_io(impl_->core.io); });
    }
  } catch (const std::exception& fault) {
    return Error::make(Error::Code::Unavailable, "cannot listen on " + listen + ": " + fault.what());
  }
  return {};
}

std::uint16_t Server::port() const { return impl_->port; }

std::size_t Server::connections() const {
  const std::lock_guard lock(impl_->core.mutex);
  return impl_->core.open.size();
}

void Server::begin_drain() { impl_->core.draining = true; }

bool Server::stop(std::chrono::milliseconds deadline) {
  const std::lock_guard lock(impl_->stop_mutex);
  begin_drain();
  impl_->core.stopping = true;
  net::post(impl_->acceptor.get_executor(), [this] {
    error_code ignored;
    impl_->acceptor.close(ignored);
  });
  bool clean = true;
  if (!impl_->threads.empty()) {
    impl_->for_each_connection([](Connection& connection) {
      if (connection.between_requests && connection.close) connection.close();
    });
    clean = impl_->wait_until_closed(deadline);
    if (!clean) {
      impl_->for_each_connection([](Connection& connection) {
        if (connection.close) connection.close();
      });
      impl_->wait_until_closed(std::chrono::milliseconds(100));
    }
  }
  impl_->core.workers.stop();
  impl_->core.io.stop();
  impl_->threads.clear();
  return clean;
}

void Server::Impl::take(tcp::socket socket) {
  if (!core.make_room()) {
    core.metrics.refused();
    return;
  }
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const net::any_io_executor strand = socket.get_executor();
  net::co_spawn(strand, serve_connection(core, std::make_unique<Registered>(core, strand), std::move(socket)),
                [](const std::exception_ptr& fault) { log_fault("connection", fault); });
}

void Server::Impl::for_each_connection(const std::function<void(Connection&)>& action) {
  const std::lock_guard lock(core.mutex);
  for (const auto& connection : core.open) {
    net::post(connection->strand, [connection, action] { action(*connection); });
  }
}

bool Server::Impl::wait_until_closed(std::chrono::milliseconds time) {
  std::unique_lock lock(core.mutex);
  return core.changed.wait_for(lock, time, [this] { return core.open.empty(); });
}

}  // namespace loadline::serve
