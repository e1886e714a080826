#include <chrono>
#include <thread>

#include "tests/unit/kube/cpprest_fixture.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

TEST(CpprestTransport, SendsTheRequestAndGivesBackAnyStatusAndItsHeaders) {
  std::string seen;
  HttpServer server(answering([&](const std::string& request) {
    seen = request;
    return http_answer(429, R"({"kind":"Status"})", "Retry-After: 7\r\n");
  }));
  Request request;
  request.method = Method::Patch;
  request.target = "/api/v1/pods?limit=5&labelSelector=a%3Db%2Cc";
  request.content_type = "application/apply-patch+yaml";
  request.body = R"({"a":1})";
  const Answer<Response> answer = transport_to(server)->send(request, 5s, {});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(answer->body, R"({"kind":"Status"})");
  EXPECT_EQ(answer->retry_after(), 7s);
  EXPECT_TRUE(seen.starts_with("PATCH /api/v1/pods?limit=5&labelSelector=a%3Db%2Cc HTTP/1.1\r\n")) << seen;
  EXPECT_NE(seen.find("Content-Type:application/apply-patch+yaml\r\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("Authorization:Bearer secret\r\n"), std::string::npos) << seen;
  EXPECT_TRUE(seen.ends_with("\r\n\r\n{\"a\":1}")) << seen;
}

TEST(CpprestTransport, DoesNotCarryTheTokenAfterARedirect) {
  std::atomic<int> elsewhere{0};
  HttpServer other(answering([&](const std::string&) {
    ++elsewhere;
    return http_answer(200, "{}");
  }));
  HttpServer server(
      answering([&](const std::string&) { return http_answer(302, "", "Location: " + other.url() + "/steal\r\n"); }));
  const Answer<Response> answer = transport_to(server)->send(get("/api"), 5s, {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, ApiError::kBadAnswer);
  EXPECT_EQ(elsewhere, 0);
}

TEST(CpprestTransport, TheDeadlineIsTotalAlsoForAServerThatDribbles) {
  HttpServer server([](Connection& connection) {
    connection.read_request();
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    for (int i = 0; i < 200 && connection.write("x"); ++i) std::this_thread::sleep_for(20ms);
  });
  const auto began = steady_clock::now();
  const Answer<Response> answer = transport_to(server)->send(get("/api"), 300ms, {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, ApiError::kTimeout);
  EXPECT_TRUE(answer.error().transient);
  EXPECT_LT(steady_clock::now() - began, 1s);
}

TEST(CpprestTransport, AStopEndsARequestThatWaits) {
  HttpServer server([](Connection& connection) {
    connection.read_request();
    connection.read_request();  // until the peer is gone
  });
  const auto transport = transport_to(server);
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(100ms);
    stop.request_stop();
  });
  const auto began = steady_clock::now();
  const Answer<Response> answer = transport->send(get("/api"), 10s, stop.get_token());
  ASSERT_FALSE(answer.ok());
  EXPECT_TRUE(answer.error().canceled());
  EXPECT_LT(steady_clock::now() - began, 2s);
}

TEST(CpprestTransport, ARefusedConnectionIsTransient) {
  ClusterConfig config;
  {
    HttpServer gone([](Connection&) {});
    config.server = gone.url();
  }
  const Answer<Response> answer = transport_to(config)->send(get("/api"), 5s, {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, ApiError::kConnection);
  EXPECT_TRUE(answer.error().transient);
}

// A token that is new each time it was refused.
class CountingAuth final : public AuthSource {
 public:
  Result<Credentials> credentials(const Patience&) override {
    return Credentials{"Bearer t" + std::to_string(generation_), {}};
  }
  void refused(const Credentials&) override { ++generation_; }

 private:
  std::atomic<int> generation_{1};
};

TEST(CpprestTransport, After401ItTriesOnceMoreWithAFreshToken) {
  std::atomic<int> requests{0};
  HttpServer server(answering([&](const std::string& request) {
    ++requests;
    const bool known = request.find("Authorization:Bearer t2\r\n") != std::string::npos;
    return http_answer(known ? 201 : 401, "{}");
  }));
  ClusterConfig config;
  config.server = server.url();
  config.auth = std::make_shared<CountingAuth>();
  const auto transport = transport_to(config);
  Request post = get("/api/v1/pods");
  post.method = Method::Post;
  post.content_type = "application/json";
  post.body = "{}";
  const Answer<Response> answer = transport->send(post, 5s, {});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(requests, 2);
}

TEST(CpprestTransport, After401WithTheSameTokenAgainItGivesUp) {
  std::atomic<int> requests{0};
  HttpServer server(answering([&](const std::string&) {
    ++requests;
    return http_answer(401, "{}");
  }));
  const Answer<Response> answer = transport_to(server)->send(get("/api"), 5s, {});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 401);
  EXPECT_EQ(requests, 1);
}

// After its first credential it has none before its caller loses patience.
class SlowAuth final : public AuthSource {
 public:
  Result<Credentials> credentials(const Patience& patience) override {
    if (first_.exchange(false)) return Credentials{"Bearer t", {}};
    while (steady_clock::now() < patience.until && !patience.stop.stop_requested()) std::this_thread::sleep_for(1ms);
    return Error::make(Error::Code::Forbidden, "no answer yet");
  }
  void refused(const Credentials&) override {}

 private:
  std::atomic<bool> first_{true};
};

TEST(CpprestTransport, WaitsForCredentialsNoLongerThanForTheAnswer) {
  HttpServer server(answering([](const std::string&) { return http_answer(200, "{}"); }));
  ClusterConfig config;
  config.server = server.url();
  config.auth = std::make_shared<SlowAuth>();
  const auto transport = transport_to(config);
  const Answer<Response> late = transport->send(get("/api"), 100ms, {});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().reason, ApiError::kTimeout);
  EXPECT_TRUE(late.error().transient);
  EXPECT_FALSE(late.error().outcome_unknown) << "nothing was sent";

  std::stop_source stop;
  stop.request_stop();
  const Answer<Response> stopped = transport->send(get("/api"), 1h, stop.get_token());
  ASSERT_FALSE(stopped.ok());
  EXPECT_TRUE(stopped.error().canceled());
  EXPECT_FALSE(stopped.error().outcome_unknown);
  EXPECT_EQ(server.connections(), 0);
}

TEST(CpprestTransport, AWatchRefusedWith401HasTheNextTokenNextTime) {
  HttpServer server(answering([&](const std::string& request) {
    return http_answer(request.find("Bearer t2\r\n") != std::string::npos ? 410 : 401, "{}");
  }));
  ClusterConfig config;
  config.server = server.url();
  config.auth = std::make_shared<CountingAuth>();
  const auto transport = transport_to(config);
  EXPECT_EQ(transport->open_watch(get("/x?watch=true"), 5s)->read(5s).error.http_status, 401);
  EXPECT_EQ(transport->open_watch(get("/x?watch=true"), 5s)->read(5s).error.http_status, 410);
}

TEST(CpprestTransport, AWatchGivesEachLineAsItComes) {
  std::atomic<bool> second{false};
  HttpServer server([&](Connection& connection) {
    connection.read_request();
    connection.write(std::string(kChunkedHead) + http_chunk("{\"n\":1}\n"));
    while (!second) std::this_thread::sleep_for(1ms);
    connection.write(http_chunk("{\"n\""));
    connection.write(http_chunk(":2}\n{\"partial"));
    connection.write("0\r\n\r\n");
  });
  const auto transport = transport_to(server);
  const auto stream = transport->open_watch(get("/api/v1/pods?watch=true"), 10s);
  WatchRead first = stream->read(5s);
  ASSERT_EQ(first.kind, WatchRead::Kind::Line) << first.error.message;
  EXPECT_EQ(first.line, "{\"n\":1}");
  EXPECT_EQ(stream->read(20ms).kind, WatchRead::Kind::Timeout);
  second = true;
  EXPECT_EQ(stream->read(5s).line, "{\"n\":2}");
  EXPECT_EQ(stream->read(5s).kind, WatchRead::Kind::End) << "a partial line is no line";
}

TEST(CpprestTransport, AWatchRefusedWithAStatusFailsWithIt) {
  HttpServer server(answering([](const std::string&) {
    return http_answer(410, R"({"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"})");
  }));
  const auto stream = transport_to(server)->open_watch(get("/api/v1/pods?watch=true"), 10s);
  const WatchRead read = stream->read(5s);
  ASSERT_EQ(read.kind, WatchRead::Kind::Failed);
  EXPECT_TRUE(read.error.expired());
  EXPECT_EQ(read.error.message, "too old resource version");
}

TEST(CpprestTransport, ASilentWatchFailsAfterItsIdleTime) {
  HttpServer server([](Connection& connection) {
    connection.read_request();
    connection.write(kChunkedHead);
    connection.read_request();
  });
  const auto stream = transport_to(server)->open_watch(get("/x?watch=true"), 300ms);
  const auto began = steady_clock::now();
  EXPECT_EQ(stream->read(5s).kind, WatchRead::Kind::Failed);
  EXPECT_LT(steady_clock::now() - began, 3s);
}

TEST(CpprestTransport, AWatchNobodyReadsStopsTheServerAndCanStillBeCanceled) {
  std::atomic<int> written{0};
  const std::string line(64 * 1024 - 1, 'x');
  HttpServer server([&](Connection& connection) {
    connection.read_request();
    connection.write(kChunkedHead);
    for (int i = 0; i < 2000 && connection.write(http_chunk(line + "\n")); ++i) ++written;
  });
  const auto transport = transport_to(server);
  auto stream = transport->open_watch(get("/x?watch=true"), 10s);
  // It stops by itself: queue and socket buffers are full long before the 128 MB are sent.
  int before = -1;
  while (written != before) {
    before = written;
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_LT(written, 1000);
  const auto began = steady_clock::now();
  stream->cancel();
  EXPECT_EQ(stream->read(5s).kind, WatchRead::Kind::End);
  stream.reset();
  EXPECT_LT(steady_clock::now() - began, 1s);
  // The I/O threads are free: another request goes through.
  HttpServer other(answering([](const std::string&) { return http_answer(200, "{}"); }));
  EXPECT_TRUE(transport_to(other)->send(get("/"), 5s, {}).ok());
}

TEST(CpprestTransport, ASlowReaderGetsEveryLineInOrder) {
  constexpr int kLines = 3000;
  HttpServer server([&](Connection& connection) {
    connection.read_request();
    connection.write(kChunkedHead);
    for (int i = 0; i < kLines; ++i) {
      if (!connection.write(http_chunk(std::to_string(i) + std::string(5000, ' ') + "\n"))) return;
    }
    connection.write("0\r\n\r\n");
  });
  const auto stream = transport_to(server)->open_watch(get("/x?watch=true"), 10s);
  for (int i = 0; i < kLines; ++i) {
    if (i % 500 == 0) std::this_thread::sleep_for(50ms);
    const WatchRead read = stream->read(5s);
    ASSERT_EQ(read.kind, WatchRead::Kind::Line) << i << " " << read.error.message;
    ASSERT_EQ(std::stoi(read.line), i);
  }
  EXPECT_EQ(stream->read(5s).kind, WatchRead::Kind::End);
}

}  // namespace
}  // namespace loadline::kube
