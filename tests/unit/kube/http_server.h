// A tiny HTTP server on loopback whose every byte the test decides: plain or TLS, one thread per connection.
#pragma once

#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace loadline::kube {

/// A CA, and a key and certificate it signed, PEM.
struct TestPki {
  std::string ca_pem;
  std::string server_certificate_pem;  // for 127.0.0.1, localhost and api.test
  std::string server_key_pem;
  std::string client_certificate_pem;  // CN=tester
  std::string client_key_pem;
  static TestPki make();
  /// With an intermediate CA, shown by the server, between the certificates and `ca_pem`.
  static TestPki make_with_intermediate();

  std::string intermediate_pem = {};  // of make_with_intermediate() alone
};

/// One connection as a handler sees it.
class Connection {
 public:
  virtual ~Connection() = default;
  /// Head and body of the next request; empty when the peer is gone.
  virtual std::string read_request() = 0;
  /// False when the peer is gone.
  virtual bool write(const std::string& bytes) = 0;
  /// The CN of the client's certificate, if any.
  virtual std::string client_name() = 0;
  /// Carries bytes both ways between the peer and a port of this machine until either is gone: what a proxy does.
  virtual void relay_to(unsigned short port) = 0;
};

class HttpServer {
 public:
  using Handler = std::function<void(Connection&)>;

  explicit HttpServer(Handler handler, const TestPki* pki = nullptr);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::string url() const;
  /// Shows another certificate to those who connect from now on. Only for a server that began with one.
  void show(const TestPki& pki);
  [[nodiscard]] unsigned short port() const { return acceptor_.local_endpoint().port(); }
  [[nodiscard]] int connections() const { return connections_; }
  /// Set while the server goes down, so that handlers that wait can leave.
  [[nodiscard]] bool stopping() const { return stopping_; }

 private:
  void accept_loop();

  const Handler handler_;
  boost::asio::io_context io_;
  std::shared_ptr<boost::asio::ssl::context> tls_;  // under mutex_ once it accepts
  boost::asio::ip::tcp::acceptor acceptor_;
  std::atomic<int> connections_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<std::shared_ptr<boost::asio::ip::tcp::socket>> sockets_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

/// "HTTP/1.1 200 OK" with a JSON body and its length.
[[nodiscard]] std::string http_answer(int status, const std::string& body, const std::string& headers = "");
/// One chunk of a chunked body.
[[nodiscard]] std::string http_chunk(const std::string& bytes);
inline constexpr const char* kChunkedHead =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n";

}  // namespace loadline::kube
