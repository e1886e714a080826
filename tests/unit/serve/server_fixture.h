// A server on loopback, and the routes the transport tests use.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

#include "serve/server.h"
#include "serve/tls.h"
#include "serve/x509.h"
#include "tests/unit/serve/raw_client.h"

namespace loadline::serve::testing {

using namespace std::chrono_literals;

/// Small sizes, and deadlines that no loaded machine misses: a test of one deadline makes that one short.
inline Limits small_limits() {
  Limits limits;
  limits.linger = 200ms;
  limits.body_bytes = 64 * 1024;
  limits.connections = 200;
  return limits;
}

inline PemPair certificate_for(const std::string& name) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const Validity day{now - 1h, now + 24h};
  const auto authority = make_authority("test authority", day);
  const auto leaf = issue_server_certificate(authority.value(), {{name}, {"127.0.0.1"}}, day);
  return leaf.value();
}

class ServerTest : public ::testing::Test {
 protected:
  void start(Limits limits = small_limits(), bool tls = false, std::size_t workers = 2, std::size_t waiting = 64) {
    ServerOptions options;
    options.name = "test";
    options.listen = "127.0.0.1:0";
    options.io_threads = 2;
    options.workers = workers;
    options.waiting = waiting;
    options.limits = limits;
    if (tls) {
      certificate = std::make_shared<ServedCertificate>();
      const PemPair pair = certificate_for("first");
      ASSERT_TRUE(certificate->replace(pair.certificate, pair.key).ok());
      options.certificate = certificate;
    }
    server = std::make_unique<Server>(options, routes());
    ASSERT_TRUE(server->start().ok());
  }

  RawClient client() { return RawClient(server->port()); }
  /// Sends `bytes` on a connection of their own and gives the status code; 0 for a close without an answer.
  int answer_to(std::string_view bytes) {
    RawClient peer = client();
    peer.send(bytes);
    return peer.status();
  }
  bool alive() { return answer_to(get("/ok")) == 200; }

  std::shared_ptr<ServedCertificate> certificate;
  std::atomic<int> running{0};  ///< requests to /wait that have begun
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::unique_ptr<Server> server;  ///< last: its handlers use what stands above

 private:
  std::vector<Route> routes() {
    return {{Method::Get, "/ok", Run::OnIoThread,
             [](const Request&) {
               return Response{200, "ok"};
             }},
            {Method::Post, "/echo", Run::OnWorker,
             [](const Request& request) {
               return Response{200, request.body + "|" + request.query + "|" + request.content_type};
             }},
            {Method::Post, "/throw", Run::OnWorker,
             [](const Request&) -> Response { throw std::runtime_error("on purpose"); }},
            {Method::Post, "/throw-oddly", Run::OnIoThread, [](const Request&) -> Response { throw 42; }},
            {Method::Post, "/wait", Run::OnWorker, [this](const Request&) {
               ++running;
               released.wait_for(kPatience);
               return Response{200, "waited"};
             }}};
  }
};

}  // namespace loadline::serve::testing
