#include "serve/connection.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "serve/tls.h"

namespace loadline::serve {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
/// In these coroutines no aggregate is made inside a co_await expression: GCC 12 destroys such temporaries twice.
template <class T>
using Awaitable = net::awaitable<T>;

/// Read at a time, at most; so much more than a header's limit a buffer holds, and no line of a body may be longer.
constexpr std::size_t kReadBytes = 16 << 10;

auto into(error_code& error) { return net::redirect_error(net::use_awaitable, error); }

/// A share of the memory that bodies may take, all connections together.
class BodyShare {
 public:
  BodyShare(Core& core, std::uint64_t bytes) : core_(core), bytes_(bytes) {
    granted_ = core_.bodies_bytes.fetch_add(bytes_) + bytes_ <= core_.options.limits.all_bodies_bytes;
    // A refused request lingers for a moment; it must not keep others out meanwhile.
    if (!granted_) core_.bodies_bytes.fetch_sub(std::exchange(bytes_, 0));
  }
  ~BodyShare() { core_.bodies_bytes.fetch_sub(bytes_); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;
  [[nodiscard]] bool granted() const { return granted_; }

 private:
  Core& core_;
  std::uint64_t bytes_;
  bool granted_ = false;
};

Response call(const Handler& handler, const Request& request) {
  try {
    return handler(request);
  } catch (const std::exception& fault) {
    spdlog::error("{} {} failed: {}", to_string(request.method), request.path, fault.what());
  } catch (...) {
    spdlog::error("{} {} failed with an unknown exception", to_string(request.method), request.path);
  }
  return {500, "internal error\n"};
}

/// A request, and the memory its body takes for as long as anybody holds it.
struct Work {
  Request request;
  std::unique_ptr<BodyShare> share;
};

/// What a connection hands to a worker, and a worker back to the connection that waits for it.
struct Pending {
  Pending(const net::any_io_executor& strand, Work handed) : arrived(strand), work(std::move(handed)) {}
  std::atomic<bool> taken{false};    ///< by the worker that begins, or by the connection that gives up before
  net::steady_timer arrived;         ///< expires at the handler's deadline, cancelled when the response is there
  Work work;                         ///< for who has taken it only
  std::optional<Response> response;  ///< on the connection's strand only
};

/// Moves from `work`.
Awaitable<Response> run(Core& core, Connection& connection, const Route& route, Work& work) {
  if (route.run == Run::OnIoThread) co_return call(route.handler, work.request);
  const auto pending = std::make_shared<Pending>(connection.strand, std::move(work));
  pending->arrived.expires_after(core.options.limits.handler);
  const bool accepted = core.workers.try_run([pending, strand = connection.strand, &handler = route.handler] {
    if (pending->taken.exchange(true)) return;
    net::post(strand, [pending, response = call(handler, pending->work.request)]() mutable {
      pending->response = std::move(response);
      pending->arrived.cancel();
    });
  });
  Response response{503, "too many requests at once; try again\n"};
  if (!accepted) co_return response;
  error_code waited;
  co_await pending->arrived.async_wait(into(waited));
  if (pending->response) {
    response = std::move(*pending->response);
  } else {
    // Nobody reads an answer any more: what waits still is not worked on, nor kept.
    if (!pending->taken.exchange(true)) pending->work = {};
    core.metrics.timed_out("handler");
    response.body = "no answer within the deadline; try again\n";
  }
  co_return response;
}

/// The route for a request, or the refusal: 404 for an unknown path, 405 for a known one with another method.
struct Match {
  const Route* route = nullptr;
  int refusal = 404;
};
Match find_route(const std::vector<Route>& routes, http::verb verb, std::string_view path) {
  Match match;
  for (const Route& route : routes) {
    if (route.path != path) continue;
    const bool same = (verb == http::verb::get && route.method == Method::Get) ||
                      (verb == http::verb::post && route.method == Method::Post);
    if (same) return {&route, 0};
    match.refusal = 405;
  }
  return match;
}

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

/// The refusal that fits a message that could not be read; 0 when the peer is gone or timed out: nobody reads it then.
int refusal_for(const error_code& error) {
  if (error == http::error::header_limit) return 431;
  if (error == http::error::body_limit) return 413;
  static const error_code parse_error = make_error_code(http::error::bad_method);
  return error.category() == parse_error.category() ? 400 : 0;
}

template <class Stream>
class Session {
 public:
  Session(Core& core, Connection& connection, Stream& stream)
      : core_(core), limits_(core.options.limits), connection_(connection), stream_(stream) {
    buffer_.reserve(kReadBytes);
  }

  Awaitable<void> serve() {
    bool more = true;
    while (more) more = co_await next_request();
  }

 private:
  void allow(std::chrono::milliseconds time) {
    deadline_ = std::chrono::steady_clock::now() + time;
    beast::get_lowest_layer(stream_).expires_at(deadline_);
  }

  /// Reads until `done`, at most until the deadline of allow(). Not by Beast's own read: that reads on, unasked and
  /// without end, for as long as a line of a chunk's header or of the trailer has no end.
  template <class Parser, class Done>
  Awaitable<error_code> read_until(Parser& parser, Done done) {
    error_code error;
    while (!error && !done()) {
      if (buffer_.size() > 0) {
        buffer_.consume(parser.put(buffer_.data(), error));
        if (error != http::error::need_more) continue;
      }
      error = co_await read_more();
    }
    co_return error;
  }

  /// Reads once. The clock is looked at before, because a peer that always has one more byte ready never lets the
  /// stream's own timer have its turn.
  Awaitable<error_code> read_more() {
    error_code error;
    const std::size_t bytes = beast::read_size(buffer_, kReadBytes);
    if (bytes == 0) co_return http::error::buffer_overflow;
    if (std::chrono::steady_clock::now() >= deadline_) co_return beast::error::timeout;
    const std::size_t read = co_await stream_.async_read_some(buffer_.prepare(bytes), into(error));
    buffer_.commit(read);
    co_return error;
  }

  void count_timeout(const error_code& error, std::string_view step) {
    if (error == beast::error::timeout) core_.metrics.timed_out(step);
  }

  /// True when another request may follow on this connection.
  Awaitable<bool> next_request() {
    if (!co_await first_bytes()) co_return false;
    http::request_parser<http::string_body> parser;
    parser.header_limit(limits_.header_bytes);
    parser.body_limit(limits_.body_bytes);
    allow(limits_.header);
    parser.eager(false);
    const error_code error = co_await read_until(parser, [&parser] { return parser.is_header_done(); });
    if (error) {
      count_timeout(error, "header");
      co_return co_await refuse(refusal_for(error));
    }

    const std::string_view target = view(parser.get().target());
    const std::size_t question = std::min(target.find('?'), target.size());
    const Match match = find_route(core_.routes, parser.get().method(), target.substr(0, question));
    if (match.route == nullptr) co_return co_await refuse(match.refusal);

    const std::uint64_t body_bytes = parser.content_length().value_or(parser.chunked() ? limits_.body_bytes : 0);
    Work work{{}, std::make_unique<BodyShare>(core_, body_bytes)};
    if (!work.share->granted()) co_return co_await refuse(503);
    if (!co_await read_body(parser)) co_return false;

    work.request = {match.route->method, match.route->path,
                    std::string(target.substr(std::min(question + 1, target.size()))),
                    std::string(view(parser.get()[http::field::content_type])), std::move(parser.get().body())};
    const Response response = co_await run(core_, connection_, *match.route, work);
    co_return co_await answer(response, parser.keep_alive() && !core_.draining);
  }

  /// Waits for the first byte of a request, unless one is here already behind the last.
  Awaitable<bool> first_bytes() {
    if (buffer_.size() > 0) co_return true;
    if (core_.stopping) co_return false;
    connection_.between_requests = true;
    if (answered_) core_.offer_place(connection_);
    // Whoever connects has something to ask: only who did may be silent for long.
    allow(answered_ ? limits_.idle : limits_.header);
    const error_code error = co_await read_more();
    connection_.between_requests = false;
    count_timeout(error, answered_ ? "idle" : "header");
    co_return core_.keep_place(connection_) && !error;
  }

  Awaitable<bool> read_body(http::request_parser<http::string_body>& parser) {
    error_code error;
    allow(limits_.body);
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> go_on(http::status::continue_, 11);
      co_await http::async_write(stream_, go_on, into(error));
    }
    parser.eager(true);
    if (!error) error = co_await read_until(parser, [&parser] { return parser.is_done(); });
    if (!error) co_return true;
    count_timeout(error, "body");
    co_await refuse(refusal_for(error));
    co_return false;
  }

  /// Answers what will not be read to its end, and ends the connection. Always false.
  Awaitable<bool> refuse(int status) {
    if (status == 0) co_return false;
    Response refusal;
    refusal.status = status;
    refusal.body = std::string(view(http::obsolete_reason(static_cast<http::status>(status)))) + "\n";
    co_await answer(refusal, false);
    co_await linger();
    co_return false;
  }

  Awaitable<bool> answer(const Response& response, bool keep_alive) {
    core_.metrics.answered(response.status);
    http::response<http::string_body> message(static_cast<http::status>(response.status), 11);
    message.set(http::field::content_type, response.content_type);
    message.body() = response.body;
    message.keep_alive(keep_alive);
    message.prepare_payload();
    answered_ = true;
    allow(limits_.write);
    error_code error;
    co_await http::async_write(stream_, message, into(error));
    count_timeout(error, "write");
    co_return !error && keep_alive;
  }

  /// Reads on for a moment what a refused peer still sends: closing on unread bytes resets the connection, and the
  /// peer would see that instead of the refusal.
  Awaitable<void> linger() {
    error_code error;
    allow(limits_.linger);
    if constexpr (std::is_same_v<Stream, TlsStream>) co_await stream_.async_shutdown(into(error));
    beast::tcp_stream& tcp = beast::get_lowest_layer(stream_);
    error.clear();
    tcp.socket().shutdown(net::ip::tcp::socket::shutdown_send, error);
    std::array<char, 16 * 1024> waste{};
    for (std::uint64_t left = limits_.body_bytes; !error && left > 0 && std::chrono::steady_clock::now() < deadline_;) {
      left -= std::min<std::uint64_t>(left, co_await tcp.async_read_some(net::buffer(waste), into(error)));
    }
  }

  Core& core_;
  const Limits& limits_;
  Connection& connection_;
  Stream& stream_;
  beast::flat_buffer buffer_{limits_.header_bytes + kReadBytes};
  bool answered_ = false;                           ///< a request was, on this connection
  std::chrono::steady_clock::time_point deadline_;  ///< of what is being read or written
};

Awaitable<void> serve_tls(Core& core, Connection& connection, TlsStream& stream) {
  error_code error;
  connection.between_requests = true;
  beast::get_lowest_layer(stream).expires_after(core.options.limits.handshake);
  co_await stream.async_handshake(net::ssl::stream_base::server, into(error));
  connection.between_requests = false;
  if (error) {
    if (error == beast::error::timeout) core.metrics.timed_out("handshake");
    core.metrics.handshake_failed();
    co_return;
  }
  Session<TlsStream> session(core, connection, stream);
  co_await session.serve();
  beast::get_lowest_layer(stream).expires_after(core.options.limits.linger);
  co_await stream.async_shutdown(into(error));
}

/// Lets the server close a connection for as long as its stream lives.
class Closable {
 public:
  template <class Stream>
  Closable(Connection& connection, Stream& stream) : connection_(connection) {
    connection_.close = [&stream] { beast::get_lowest_layer(stream).close(); };
  }
  ~Closable() { connection_.close = nullptr; }
  Closable(const Closable&) = delete;
  Closable& operator=(const Closable&) = delete;

 private:
  Connection& connection_;
};

}  // namespace

void Core::offer_place(Connection& connection) {
  const std::lock_guard lock(mutex);
  connection.idle_since = std::chrono::steady_clock::now();
}

bool Core::keep_place(Connection& connection) {
  const std::lock_guard lock(mutex);
  connection.idle_since.reset();
  return !connection.leaving;
}

bool Core::make_room() {
  const std::lock_guard lock(mutex);
  if (open.size() < options.limits.connections) return true;
  std::size_t staying = 0;
  std::shared_ptr<Connection> longest;
  for (const std::shared_ptr<Connection>& connection : open) {
    if (connection->leaving) continue;
    ++staying;
    if (!connection->idle_since) continue;
    if (longest == nullptr || *connection->idle_since < *longest->idle_since) longest = connection;
  }
  if (staying < options.limits.connections) return true;
  if (longest == nullptr) return false;
  longest->leaving = true;
  metrics.displaced();
  net::post(longest->strand, [longest] {
    if (longest->close) longest->close();
  });
  return true;
}

Registered::Registered(Core& core, net::any_io_executor strand)
    : core_(core), connection_(std::make_shared<Connection>()) {
  connection_->strand = std::move(strand);
  const std::lock_guard lock(core_.mutex);
  core_.open.insert(connection_);
  core_.metrics.set_connections(core_.open.size());
}

Registered::~Registered() {
  const std::lock_guard lock(core_.mutex);
  core_.open.erase(connection_);
  core_.metrics.set_connections(core_.open.size());
  core_.changed.notify_all();
}

net::awaitable<void> serve_connection(Core& core, std::unique_ptr<Registered> registered, net::ip::tcp::socket socket) {
  Connection& connection = registered->connection();
  if (core.options.certificate == nullptr) {
    beast::tcp_stream stream(std::move(socket));
    const Closable closable(connection, stream);
    Session<beast::tcp_stream> session(core, connection, stream);
    co_await session.serve();
    co_return;
  }
  const std::shared_ptr<net::ssl::context> context = core.options.certificate->context();
  if (context == nullptr) co_return;
  TlsStream stream(std::move(socket), *context);
  const Closable closable(connection, stream);
  co_await serve_tls(core, connection, stream);
}

}  // namespace loadline::serve
