// The server towards peers that behave.
#include "serve/server.h"

#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "serve/health.h"
#include "tests/unit/serve/server_fixture.h"

namespace loadline::serve::testing {
namespace {

class ServerBehaviour : public ServerTest {};

TEST_F(ServerBehaviour, PassesBodyQueryAndContentTypeAndRoutesOnThePathAlone) {
  start();
  RawClient peer = client();
  peer.send(post("/echo?timeout=10s", "hello"));
  EXPECT_TRUE(peer.response().ends_with("hello|timeout=10s|application/json"));
}

TEST_F(ServerBehaviour, KeepsTheConnectionForFurtherRequests) {
  start();
  RawClient peer = client();
  for (int i = 0; i < 5; ++i) {
    peer.send(post("/echo", std::to_string(i)));
    EXPECT_TRUE(peer.response().ends_with("\r\n\r\n" + std::to_string(i) + "||application/json"));
  }
}

TEST_F(ServerBehaviour, AnswersPipelinedRequestsInOrder) {
  start();
  RawClient peer = client();
  peer.send(post("/echo", "a") + post("/echo", "b") + post("/echo", "c"));
  for (const char* body : {"a|", "b|", "c|"}) {
    EXPECT_NE(peer.response().find(std::string("\r\n\r\n") + body), std::string::npos);
  }
}

TEST_F(ServerBehaviour, ReadsChunkedBodies) {
  start();
  RawClient peer = client();
  peer.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n");
  EXPECT_NE(peer.response().find("\r\n\r\nabcde|"), std::string::npos);
}

TEST_F(ServerBehaviour, ReadsTheSameHoweverTheBytesAreCut) {
  start();
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n";
  const std::string requests = chunked + post("/echo", "def") + get("/ok") + chunked;
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, requests.size()}) {
    RawClient peer = client();
    for (std::size_t at = 0; at < requests.size(); at += step) peer.send(requests.substr(at, step));
    for (const char* body : {"abc|", "def|", "ok", "abc|"}) {
      EXPECT_NE(peer.response().find(std::string("\r\n\r\n") + body), std::string::npos) << step << " at a time";
    }
  }
}

TEST_F(ServerBehaviour, AnIdleConnectionIsClosedAtItsDeadline) {
  Limits limits = small_limits();
  limits.idle = 200ms;
  start(limits);
  RawClient peer = client();
  peer.send(get("/ok"));
  EXPECT_EQ(peer.status(), 200);
  EXPECT_TRUE(peer.closed_by_server());
}

TEST_F(ServerBehaviour, SaysContinueToThosWhoAskBeforeSending) {
  start();
  RawClient peer = client();
  peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(peer.response().starts_with("HTTP/1.1 100"));
  peer.send("ab");
  EXPECT_NE(peer.response().find("\r\n\r\nab|"), std::string::npos);
}

TEST_F(ServerBehaviour, AHandlerThatThrowsIsA500AndTheConnectionLives) {
  start();
  RawClient peer = client();
  peer.send(post("/throw", ""));
  EXPECT_EQ(peer.status(), 500);
  peer.send(post("/throw-oddly", ""));
  EXPECT_EQ(peer.status(), 500);
  peer.send(get("/ok"));
  EXPECT_EQ(peer.status(), 200);
}

TEST_F(ServerBehaviour, AHandlerThatTakesTooLongIsA503) {
  Limits limits = small_limits();
  limits.handler = 200ms;
  start(limits);
  RawClient peer = client();
  peer.send(post("/wait", ""));
  EXPECT_EQ(peer.status(), 503);
  release.set_value();
}

TEST_F(ServerBehaviour, ARequestThatGotA503WhileItWaitedIsNotWorkedOn) {
  Limits limits = small_limits();
  limits.handler = 200ms;
  start(limits, false, 1);
  EXPECT_EQ(answer_to(post("/wait", "begins")), 503);
  EXPECT_EQ(answer_to(post("/wait", "waits for the worker")), 503);
  release.set_value();
  EXPECT_TRUE(eventually([&] { return answer_to(post("/echo", "queued behind it")) == 200; }));
  EXPECT_EQ(running, 1);
}

TEST_F(ServerBehaviour, ABurstBeyondTheQueueIsA503AtOnce) {
  Limits limits = small_limits();
  limits.handler = kPatience;
  start(limits, false, 1, 1);
  std::atomic<int> served{0};
  std::atomic<int> refused{0};
  std::vector<std::jthread> burst;
  for (int i = 0; i < 5; ++i) {
    burst.emplace_back([&] { ++(answer_to(post("/wait", "")) == 503 ? refused : served); });
  }
  EXPECT_TRUE(eventually([&] { return refused == 3; })) << "one runs, one waits, the rest is told at once";
  EXPECT_TRUE(alive()) << "routes that need no worker still answer";
  release.set_value();
  burst.clear();
  EXPECT_EQ(served, 2);
}

TEST_F(ServerBehaviour, SaysWhyItCannotListen) {
  start();
  const std::string taken = "127.0.0.1:" + std::to_string(server->port());
  for (const std::string& listen : {taken, std::string("nowhere"), std::string("localhost:80"), std::string("1.2.3.4:"),
                                    std::string("127.0.0.1:70000")}) {
    Server other({.name = "other", .listen = listen}, {});
    const Status status = other.start();
    ASSERT_FALSE(status.ok()) << listen;
    EXPECT_NE(status.error().message.find(listen), std::string::npos) << status.error().message;
  }
}

TEST_F(ServerBehaviour, DrainLetsTheRequestOnItsWayFinishAndRefusesNewConnections) {
  Limits limits = small_limits();
  limits.handler = kPatience;
  start(limits);
  RawClient idle = client();
  idle.send(get("/ok"));
  ASSERT_EQ(idle.status(), 200);
  RawClient busy = client();
  busy.send(post("/wait", ""));
  ASSERT_TRUE(eventually([&] { return running == 1; }));
  bool clean = false;
  std::jthread stopping([&] { clean = server->stop(kPatience); });
  EXPECT_TRUE(idle.closed_by_server());
  RawClient late = client();
  EXPECT_TRUE(!late.connected() || late.closed_by_server());
  release.set_value();
  const std::string response = busy.response();
  EXPECT_TRUE(response.starts_with("HTTP/1.1 200"));
  EXPECT_NE(response.find("Connection: close"), std::string::npos);
  stopping.join();
  EXPECT_TRUE(clean);
}

TEST_F(ServerBehaviour, DrainEndsAtItsDeadline) {
  start();
  RawClient stalled = client();
  // Once the first request is answered the second is being read.
  stalled.send(get("/ok") + "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  ASSERT_EQ(stalled.status(), 200);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(server->stop(50ms));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << "well before the body's own deadline of 10 s";
}

TEST_F(ServerBehaviour, BeforeTheDrainNewClientsAreStillServedAndAskedToGoElsewhere) {
  start();
  RawClient old = client();
  old.send(get("/ok"));
  ASSERT_EQ(old.status(), 200);
  server->begin_drain();
  RawClient fresh = client();
  for (RawClient* peer : {&old, &fresh}) {
    peer->send(get("/ok"));
    const std::string response = peer->response();
    EXPECT_TRUE(response.starts_with("HTTP/1.1 200"));
    EXPECT_NE(response.find("Connection: close"), std::string::npos);
    EXPECT_TRUE(peer->closed_by_server());
  }
}

class TlsBehaviour : public ServerTest {};

TEST_F(TlsBehaviour, SpeaksOnlyHttp11ToThoseWhoOfferHttp2) {
  start(small_limits(), true);
  RawClient both = client();
  ASSERT_TRUE(both.handshake("\x02h2\x08http/1.1"));
  EXPECT_EQ(both.chosen_alpn(), "http/1.1");
  both.send(get("/ok"));
  EXPECT_EQ(both.status(), 200);
  RawClient only_h2 = client();
  ASSERT_TRUE(only_h2.handshake("\x02h2"));
  EXPECT_EQ(only_h2.chosen_alpn(), "");
}

TEST_F(TlsBehaviour, RefusesProtocolsBelowTls12) {
  start(small_limits(), true);
  EXPECT_FALSE(client().handshake({}, TLS1_1_VERSION));
  EXPECT_TRUE(client().handshake({}, TLS1_2_VERSION));
  EXPECT_TRUE(client().handshake({}, TLS1_3_VERSION));
}

TEST_F(TlsBehaviour, NewConnectionsGetTheNewCertificateAndOpenOnesGoOn) {
  start(small_limits(), true);
  RawClient old = client();
  ASSERT_TRUE(old.handshake());
  EXPECT_EQ(old.server_name(), "first");
  const PemPair second = certificate_for("second");
  ASSERT_TRUE(certificate->replace(second.certificate, second.key).ok());
  RawClient fresh = client();
  ASSERT_TRUE(fresh.handshake());
  EXPECT_EQ(fresh.server_name(), "second");
  old.send(get("/ok"));
  EXPECT_EQ(old.status(), 200);
}

TEST_F(TlsBehaviour, KeepsItsCertificateWhenTheNewPairDoesNotMatchOrIsNoPem) {
  start(small_limits(), true);
  const PemPair second = certificate_for("second");
  const PemPair third = certificate_for("third");
  EXPECT_FALSE(certificate->replace(second.certificate, third.key).ok());
  EXPECT_FALSE(certificate->replace("nonsense", second.key).ok());
  EXPECT_FALSE(certificate->replace(second.certificate, "").ok());
  RawClient peer = client();
  ASSERT_TRUE(peer.handshake());
  EXPECT_EQ(peer.server_name(), "first");
}

TEST_F(TlsBehaviour, NoRequestIsLostWhileCertificatesChangeUnderLoad) {
  start(small_limits(), true);
  std::atomic<bool> done{false};
  std::atomic<int> failed{0};
  std::atomic<int> answered{0};
  std::vector<std::jthread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      while (!done) {
        RawClient peer = client();
        if (!peer.handshake() || !peer.send(get("/ok")) || peer.status() != 200) ++failed;
        ++answered;
      }
    });
  }
  const std::vector<PemPair> pairs = {certificate_for("a"), certificate_for("b")};
  for (std::size_t i = 0; i < 100 || answered < 50; ++i) {
    ASSERT_TRUE(certificate->replace(pairs[i % 2].certificate, pairs[i % 2].key).ok());
    std::this_thread::sleep_for(1ms);
  }
  done = true;
  clients.clear();
  EXPECT_EQ(failed, 0) << "of " << answered;
}

TEST_F(TlsBehaviour, WithoutACertificateYetConnectionsAreClosed) {
  ServerOptions options{.name = "bare", .listen = "127.0.0.1:0", .certificate = std::make_shared<ServedCertificate>()};
  server = std::make_unique<Server>(options, std::vector<Route>{});
  ASSERT_TRUE(server->start().ok());
  EXPECT_TRUE(client().closed_by_server());
}

TEST(Health, SaysAliveAndWhatIsMissingAndServesMetrics) {
  const auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildCounter().Name("loadline_test_total").Help("h").Register(*registry).Add({}).Increment();
  std::atomic<bool> ready{false};
  Server server({.name = "health", .listen = "127.0.0.1:0", .metrics = registry},
                health_routes(
                    [&] {
                      return Readiness{ready, "waiting for nodes"};
                    },
                    registry));
  ASSERT_TRUE(server.start().ok());
  const auto ask = [&](const char* path) {
    RawClient peer(server.port());
    peer.send(get(path));
    return peer.response();
  };
  EXPECT_TRUE(ask("/healthz").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(ask("/readyz").starts_with("HTTP/1.1 503"));
  EXPECT_TRUE(ask("/readyz").ends_with("waiting for nodes\n"));
  ready = true;
  EXPECT_TRUE(ask("/readyz").starts_with("HTTP/1.1 200"));
  const std::string metrics = ask("/metrics");
  EXPECT_NE(metrics.find("loadline_test_total 1"), std::string::npos);
  EXPECT_NE(metrics.find("loadline_http_responses_total{code=\"503\",server=\"health\"} 2"), std::string::npos)
      << metrics;
}

}  // namespace
}  // namespace loadline::serve::testing
