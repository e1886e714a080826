// What this file works around in cpprestsdk 2.10.18 is said where it is done; docs/decisions.md has the summary.
//
//  - Its threads end the process when anything throws: ours run its loop inside a catch (cpprest_threads.cpp).
//  - Its timeout restarts with every step: total deadlines are kept by the waiting caller, which then cancels.
//  - It follows redirects with all headers, the token too: redirects are off, and a 3xx is an error.
//  - It trusts the system's CAs besides ours: the store is replaced for each connection.
//  - Its reading streams copy or wait: answers are pushed into a sink as they come; a pending sink stops the socket.
//  - A pending sink outlives cancel and timeout: the line queue is closed first, then the request cancelled.
//  - Blocking on one of its threads would stop all I/O: send() refuses there (io_thread.h).
#include "kube/cpprest_transport.h"

#include <cpprest/http_client.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <mutex>

#include "kube/ca_bundle.h"
#include "kube/files.h"
#include "kube/io_thread.h"
#include "kube/line_queue.h"
#include "kube/proxy.h"
#include "kube/tls.h"

namespace loadline::kube {
namespace {

namespace http = web::http;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// More than any list page of ours; a larger answer is not from an API server we can work with.
constexpr std::size_t kMaxAnswerBytes = 512UL * 1024 * 1024;

// A watch that cannot be opened by then is opened anew, so that whoever opens it can be stopped meanwhile.
constexpr auto kOpenWait = std::chrono::seconds(5);

// Gives each chunk of an answer to `consume`, whose task says when the next may be read.
class PushBuffer final : public concurrency::streams::details::streambuf_state_manager<std::uint8_t> {
 public:
  using Consume = std::function<pplx::task<std::size_t>(std::string_view)>;
  using Base = concurrency::streams::details::streambuf_state_manager<std::uint8_t>;

  static concurrency::streams::ostream stream(Consume consume) {
    const auto buffer = std::make_shared<PushBuffer>(std::move(consume));
    return concurrency::streams::streambuf<std::uint8_t>(buffer).create_ostream();
  }

  explicit PushBuffer(Consume consume) : Base(std::ios_base::out), consume_(std::move(consume)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(std::size_t, std::ios_base::openmode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return pos_type(traits::eof()); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return pos_type(traits::eof()); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return pos_type(traits::eof());
  }
  bool acquire(std::uint8_t*& pointer, std::size_t& count) override {
    pointer = nullptr;
    count = 0;
    return false;
  }
  void release(std::uint8_t*, std::size_t) override {}

 protected:
  pplx::task<int_type> _putc(std::uint8_t byte) override {
    const char c = static_cast<char>(byte);
    return consume_(std::string_view(&c, 1)).then([byte](std::size_t) { return static_cast<int_type>(byte); });
  }
  pplx::task<std::size_t> _putn(const std::uint8_t* data, std::size_t count) override {
    return consume_(std::string_view(reinterpret_cast<const char*>(data), count));
  }
  pplx::task<int_type> _bumpc() override { return unreadable<int_type>(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return unreadable<int_type>(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return unreadable<int_type>(); }
  pplx::task<int_type> _ungetc() override { return unreadable<int_type>(); }
  pplx::task<std::size_t> _getn(std::uint8_t*, std::size_t) override { return pplx::task_from_result<std::size_t>(0); }
  std::size_t _scopy(std::uint8_t*, std::size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}

 private:
  template <class T>
  static pplx::task<T> unreadable() {
    return pplx::task_from_result(static_cast<T>(traits::eof()));
  }

  Consume consume_;
};

std::string what(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown failure";
  }
}

// Where a send() and the library's tasks meet; outlives whichever ends first.
struct Exchange {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Response response;
  std::optional<ApiError> failure;

  void finish(std::optional<ApiError> error) {
    const std::lock_guard lock(mutex);
    failure = std::move(error);
    done = true;
    changed.notify_all();
  }
};

std::map<std::string, std::string> lower_case_headers(const http::http_headers& headers) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : headers) out.emplace(lower_case(name), value);
  return out;
}

std::optional<ApiError> unusable(int status) {
  // 1xx: the library takes an interim answer for the final one.
  if (status >= 200 && (status < 300 || status >= 400)) return std::nullopt;
  return ApiError::transport(ApiError::kBadAnswer, "answered HTTP " + std::to_string(status) +
                                                       ", which no API server does; is a proxy in the way?");
}

class CpprestWatch final : public WatchStream {
 public:
  CpprestWatch(std::shared_ptr<LineQueue> lines, pplx::cancellation_token_source cancel)
      : lines_(std::move(lines)), cancel_(std::move(cancel)) {}
  ~CpprestWatch() override { end(); }
  CpprestWatch(const CpprestWatch&) = delete;
  CpprestWatch& operator=(const CpprestWatch&) = delete;

  WatchRead read(milliseconds wait) override { return lines_->read(wait); }
  void cancel() noexcept override { end(); }

 private:
  void end() noexcept {
    try {
      lines_->close();  // first: a pending write would keep the request alive for ever
      cancel_.cancel();
    } catch (const std::exception& e) {
      spdlog::error("cancelling a watch: {}", e.what());
    }
  }

  const std::shared_ptr<LineQueue> lines_;
  pplx::cancellation_token_source cancel_;
};

// A watch that could not even be started.
class FailedWatch final : public WatchStream {
 public:
  explicit FailedWatch(ApiError error) : error_(std::move(error)) {}
  WatchRead read(milliseconds) override { return {WatchRead::Kind::Failed, {}, error_}; }
  void cancel() noexcept override {}

 private:
  const ApiError error_;
};

class CpprestTransport final : public Transport {
 public:
  explicit CpprestTransport(ClusterConfig config)
      : config_(std::move(config)), ca_(std::make_shared<CaBundle>(config_.ca_pem, config_.ca_file, system_clock())) {}

  Answer<Response> send(Request request, milliseconds timeout, std::stop_token stop) override {
    about_to_wait("a request");
    if (on_io_thread()) return ApiError::transport(ApiError::kBadAnswer, "send() was called on an I/O thread");
    try {
      const auto deadline = steady_clock::now() + timeout;
      const Patience patience{deadline, stop};
      Result<Credentials> who = config_.auth->credentials(patience);
      if (!who) return unsent(who.error(), patience);
      Answer<Response> answer = send_once(request, *who, deadline, stop);
      if (!answer && answer.error().reason == ApiError::kConnection) ca_->doubt();
      if (!answer || answer->status != 401) return answer;
      // The server did nothing yet, so even a write may go again under fresher credentials.
      config_.auth->refused(*who);
      Result<Credentials> fresh = config_.auth->credentials(patience);
      return fresh && *fresh != *who ? send_once(request, *fresh, deadline, stop) : std::move(answer);
    } catch (...) {
      return ApiError::transport(ApiError::kBadAnswer, what(std::current_exception()));
    }
  }

  std::unique_ptr<WatchStream> open_watch(Request request, milliseconds idle) override {
    about_to_wait("opening a watch");
    try {
      const Patience patience{steady_clock::now() + kOpenWait, {}};
      Result<Credentials> who = config_.auth->credentials(patience);
      if (!who) return std::make_unique<FailedWatch>(unsent(who.error(), patience));
      return start_watch(request, *who, idle);
    } catch (...) {
      return std::make_unique<FailedWatch>(ApiError::transport(ApiError::kBadAnswer, what(std::current_exception())));
    }
  }

  // Whether an address and certificates like these can work at all.
  Status check() {
    try {
      const Result<Credentials> who = config_.auth->credentials();
      const TlsMaterial material{config_.ca_pem, who ? who->identity : ClientIdentity{}};
      if (config_.server.starts_with("https:") && !config_.insecure && !holds_ca(material.ca_pem)) {
        return Error::make(Error::Code::Invalid, config_.server + ": no usable CA certificate is configured for it");
      }
      const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
      if (!set_up_tls(context.get(), material)) {
        return Error::make(Error::Code::Invalid, "the client certificate and key cannot be used together");
      }
      if (host_of(config_.server).find(':') != std::string::npos) {
        return Error::make(Error::Code::Invalid,
                           config_.server + ": an IPv6 address cannot be used here; give a host name");
      }
      if (!config_.proxy_url.empty() && !config_.proxy_url.starts_with("http://")) {
        return Error::make(Error::Code::Invalid, "proxy " + config_.proxy_url + ": only http:// proxies can be used");
      }
      client(material, std::chrono::seconds(30));
      return {};
    } catch (...) {
      return Error::make(Error::Code::Invalid, config_.server + ": " + what(std::current_exception()));
    }
  }

 private:
  // Why there were no credentials to send a request with.
  static ApiError unsent(const Error& why, const Patience& patience) {
    ApiError out = ApiError::transport("Unauthorized", why.message);
    out.code = why.code;
    if (steady_clock::now() >= patience.until) out = ApiError::transport(ApiError::kTimeout, why.message);
    if (patience.stop.stop_requested()) out = ApiError::transport(ApiError::kCanceled, "canceled");
    out.transient = !out.canceled();  // files and plugins come back
    out.outcome_unknown = false;
    return out;
  }

  std::shared_ptr<http::client::http_client> client(const TlsMaterial& material, milliseconds step_timeout) const {
    http::client::http_client_config options;
    options.set_max_redirects(0);
    options.set_timeout(step_timeout);
    options.set_validate_certificates(!config_.insecure);
    if (!config_.proxy_url.empty()) options.set_proxy(proxy(config_.proxy_url));
    options.set_ssl_context_callback([material](boost::asio::ssl::context& context) {
      // Only a system_error is caught by the library here.
      if (!set_up_tls(context.native_handle(), material)) {
        throw boost::system::system_error(boost::asio::error::invalid_argument, "client certificate");
      }
    });
    return std::make_shared<http::client::http_client>(config_.server, options);
  }

  // The library ignores a name and password that stand in the address, and connects to port 0 when it names none.
  static web::web_proxy proxy(const std::string& url) {
    const web::uri address = web::uri_builder(web::uri(url)).set_port(port_of(url)).to_uri();
    web::web_proxy out(address);
    const std::string& who = address.user_info();
    const auto colon = std::min(who.find(':'), who.size());
    if (!who.empty()) {
      out.set_credentials(
          {web::uri::decode(who.substr(0, colon)), web::uri::decode(who.substr(std::min(colon + 1, who.size())))});
    }
    return out;
  }

  // The kept-alive client for requests; made anew when certificates change, so that no old connection is reused.
  std::shared_ptr<http::client::http_client> rest_client(const ClientIdentity& identity) {
    TlsMaterial now{ca_->pem(), identity};
    const std::lock_guard lock(mutex_);
    if (!rest_ || rest_material_ != now) {
      rest_ = client(now, std::chrono::seconds(30));
      rest_material_ = std::move(now);
    }
    return rest_;
  }

  http::http_request to_cpprest(const Request& request, const Credentials& who) const {
    http::http_request out{http::method(std::string(to_string(request.method)))};
    out.set_request_uri(request.target);
    if (!request.body.empty()) out.set_body(request.body, request.content_type);
    http::http_headers& headers = out.headers();
    for (const auto& [name, value] : config_.headers) headers.add(name, value);
    for (const auto& [name, value] : request.headers) headers.add(name, value);
    if (!headers.has("Accept")) headers.add("Accept", "application/json");
    if (!who.authorization.empty()) headers.add("Authorization", who.authorization);
    // The library checks the server's certificate against the Host header when there is one.
    if (!config_.tls_server_name.empty()) headers.add("Host", config_.tls_server_name);
    return out;
  }

  Answer<Response> send_once(const Request& request, const Credentials& who, steady_clock::time_point deadline,
                             const std::stop_token& stop) {
    const auto exchange = std::make_shared<Exchange>();
    const auto client = rest_client(who.identity);
    pplx::cancellation_token_source cancel;
    start(client, to_cpprest(request, who), exchange, cancel.get_token());

    const std::stop_callback wake(stop, [&exchange] {
      const std::lock_guard lock(exchange->mutex);
      exchange->changed.notify_all();
    });
    std::unique_lock lock(exchange->mutex);
    exchange->changed.wait_until(lock, deadline, [&] { return exchange->done || stop.stop_requested(); });
    if (exchange->done) {
      if (exchange->failure) return *exchange->failure;
      return std::move(exchange->response);
    }
    lock.unlock();
    cancel.cancel();  // the tasks end by themselves; the exchange is theirs too
    if (stop.stop_requested()) return ApiError::transport(ApiError::kCanceled, "canceled");
    return ApiError::transport(ApiError::kTimeout, std::string(to_string(request.method)) + " " + request.target +
                                                       ": no complete answer within the deadline");
  }

  static void start(const std::shared_ptr<http::client::http_client>& client, http::http_request request,
                    const std::shared_ptr<Exchange>& exchange, const pplx::cancellation_token& token) {
    request.set_response_stream(PushBuffer::stream([exchange](std::string_view bytes) -> pplx::task<std::size_t> {
      const std::lock_guard lock(exchange->mutex);
      if (exchange->response.body.size() + bytes.size() > kMaxAnswerBytes) {
        return pplx::task_from_exception<std::size_t>(std::runtime_error("the answer is larger than 512 MiB"));
      }
      exchange->response.body.append(bytes);
      return pplx::task_from_result(bytes.size());
    }));
    // Every task is looked at in the end: an exception nobody sees would end the process.
    client->request(request, token)
        .then([exchange](const http::http_response& response) {
          {
            const std::lock_guard lock(exchange->mutex);
            exchange->response.status = response.status_code();
            exchange->response.headers = lower_case_headers(response.headers());
          }
          return response.content_ready();
        })
        .then([exchange, keep = client](const pplx::task<http::http_response>& last) {
          try {
            const http::http_response response = last.get();
            exchange->finish(unusable(response.status_code()));
          } catch (...) {
            exchange->finish(ApiError::transport(ApiError::kConnection, what(std::current_exception())));
          }
        });
  }

  std::unique_ptr<WatchStream> start_watch(const Request& request, const Credentials& who, milliseconds idle) {
    // A client, and so a connection, for each watch: its timeout is this watch's idle time, and nothing else
    // waits behind it.
    const auto client = this->client({ca_->pem(), who.identity}, idle);
    const auto lines = std::make_shared<LineQueue>();
    http::http_request message = to_cpprest(request, who);
    message.set_response_stream(PushBuffer::stream([lines](std::string_view bytes) {
      const pplx::task_completion_event<std::size_t> taken;
      lines->write(bytes, [taken, size = bytes.size()] { taken.set(size); });
      return pplx::task<std::size_t>(taken);
    }));
    const pplx::cancellation_token_source cancel;
    client->request(message, cancel.get_token())
        .then([lines, auth = config_.auth, who](const http::http_response& response) {
          const int status = response.status_code();
          if (status == 401) auth->refused(who);
          if (const auto problem = unusable(status)) {
            lines->finish(problem);
          } else {
            lines->set_status(status, Response{status, {}, lower_case_headers(response.headers())}.retry_after());
          }
          return response.content_ready();
        })
        .then([lines, ca = ca_, keep = client](const pplx::task<http::http_response>& last) {
          try {
            last.get();
            lines->finish(std::nullopt);
          } catch (...) {
            ca->doubt();
            lines->finish(ApiError::transport(ApiError::kConnection, what(std::current_exception())));
          }
        });
    return std::make_unique<CpprestWatch>(lines, cancel);
  }

  const ClusterConfig config_;
  const std::shared_ptr<CaBundle> ca_;
  std::mutex mutex_;  // for the two below
  TlsMaterial rest_material_;
  std::shared_ptr<http::client::http_client> rest_;
};

}  // namespace

Result<std::shared_ptr<Transport>> make_cpprest_transport(const ClusterConfig& config) {
  start_transport_io();
  auto transport = std::make_shared<CpprestTransport>(config);
  if (Status status = transport->check(); !status) return status.error();
  return std::shared_ptr<Transport>(std::move(transport));
}

}  // namespace loadline::kube
