// What a peer may send that is no proper request, and what must not come of it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/serve/server_fixture.h"

namespace loadline::serve::testing {
namespace {

class HostilePeers : public ServerTest {};

struct RawRequest {
  const char* name;
  std::string bytes;
  int status;  ///< 0: closed without an answer
};

const std::string kChunked = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST_F(HostilePeers, EachMalformedRequestIsRefusedAndTheServerLivesOn) {
  start();
  const std::vector<RawRequest> table = {
      {"chunk size -1", kChunked + "-1\r\nabc\r\n0\r\n\r\n", 400},
      {"chunk size -2", kChunked + "-2\r\nabc\r\n0\r\n\r\n", 400},
      {"chunk size beyond 64 bits", kChunked + "fffffffffffffffff\r\nabc\r\n", 400},
      {"chunk size beyond the limit", kChunked + "7fffffffffffffff\r\nabc\r\n", 413},
      {"chunk size not hexadecimal", kChunked + "zz\r\nabc\r\n", 400},
      {"chunk without its line end", kChunked + "3\r\nabcdef\r\n0\r\n\r\n", 400},
      {"chunk extension without end", kChunked + "1;" + std::string(60 * 1024, 'a'), 400},
      {"trailer without end", kChunked + "0\r\nX: " + std::string(60 * 1024, 'a'), 400},
      {"trailers without end", kChunked + "0\r\n" + repeated("X: y\r\n", 10 * 1024), 400},
      {"negative length", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
      {"length not a number", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n", 400},
      {"length beyond 64 bits", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
       400},
      {"length beyond the limit", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n", 413},
      {"two lengths", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
      {"length and chunks",
       "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"huge header", "GET /ok HTTP/1.1\r\nHost: x\r\nX: " + std::string(64 * 1024, 'a') + "\r\n\r\n", 431},
      {"huge target", "GET /" + std::string(64 * 1024, 'a') + " HTTP/1.1\r\n\r\n", 431},
      {"no version", "GET /ok\r\n\r\n", 400},
      {"unknown version", "GET /ok HTTP/9.9\r\n\r\n", 400},
      {"header without colon", "GET /ok HTTP/1.1\r\nnonsense\r\n\r\n", 400},
      {"a null byte in the header", std::string("GET /ok HTTP/1.1\r\nA: \0b\r\n\r\n", 27), 400},
      {"TLS on a plain port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},
      {"junk", "\xff\xfe\xfd\r\n\r\n", 400},
      {"unknown path", get("/etc/passwd"), 404},
      {"path that only begins like a route", get("/okay"), 404},
      {"other host's path", get("http://elsewhere/ok"), 404},
      {"TRACE", "TRACE /ok HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n", 405},
      {"OPTIONS", "OPTIONS /ok HTTP/1.1\r\nHost: x\r\n\r\n", 405},
      {"method of another route", get("/echo"), 405},
      {"made-up method", "FETCH /ok HTTP/1.1\r\nHost: x\r\n\r\n", 405},
  };
  for (const RawRequest& request : table) {
    EXPECT_EQ(answer_to(request.bytes), request.status) << request.name;
    EXPECT_TRUE(alive()) << "after " << request.name;
  }
}

TEST_F(HostilePeers, TraceDoesNotEchoTheToken) {
  start();
  RawClient peer = client();
  peer.send("TRACE /ok HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n");
  EXPECT_EQ(peer.response().find("secret"), std::string::npos);
}

TEST_F(HostilePeers, RefusesABodyThatIsTooLargeBeforeReadingIt) {
  start();
  RawClient peer = client();
  peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n");
  EXPECT_EQ(peer.status(), 413);
  EXPECT_TRUE(peer.closed_by_server());
}

TEST_F(HostilePeers, TheRefusalIsReadableThoughTheBodyIsStillOnItsWay) {
  start();
  RawClient peer = client();
  peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + std::string(50'000, 'a'));
  EXPECT_EQ(peer.status(), 413);
}

TEST_F(HostilePeers, RefusesBodiesThatTogetherTakeTooMuchMemory) {
  Limits limits = small_limits();
  limits.all_bodies_bytes = 1000;
  limits.handler = kPatience;
  start(limits);
  RawClient first = client();
  first.send(post("/wait", std::string(900, 'a')));
  ASSERT_TRUE(eventually([&] { return running == 1; }));
  EXPECT_EQ(answer_to(post("/echo", std::string(200, 'a'))), 503);
  EXPECT_EQ(answer_to(post("/echo", std::string(50, 'a'))), 200);
  release.set_value();
  EXPECT_EQ(first.status(), 200);
}

TEST_F(HostilePeers, AChunkExtensionThatNeverEndsIsNotReadOn) {
  start();
  RawClient peer = client();
  peer.send("GET /ok HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;");
  const std::string part(64 * 1024, 'a');
  int sent = 0;
  while (sent < 1000 && peer.send(part)) ++sent;
  EXPECT_LT(sent, 1000) << "the server took 64 MiB that end nowhere";
  EXPECT_TRUE(alive());
}

TEST_F(HostilePeers, AnAbandonedRequestThatIsBeingWorkedOnStillCountsAsMemory) {
  Limits limits = small_limits();
  limits.all_bodies_bytes = 1000;
  limits.handler = 200ms;
  start(limits);
  RawClient peer = client();
  peer.send(post("/wait", std::string(900, 'a')) + post("/throw-oddly", std::string(200, 'a')));
  EXPECT_EQ(peer.status(), 503) << "no answer in time";
  EXPECT_EQ(peer.status(), 503) << "no memory for another";
  release.set_value();
  EXPECT_TRUE(eventually([&] { return answer_to(post("/throw-oddly", std::string(200, 'a'))) == 500; }));
}

TEST_F(HostilePeers, ClosesConnectionsThatDribbleTheirHeader) {
  Limits limits = small_limits();
  limits.header = 500ms;
  start(limits);
  std::vector<RawClient> peers;
  for (int i = 0; i < 100; ++i) {
    peers.push_back(client());
    peers.back().send("POST /echo HTTP/1.1\r\nHost:");
  }
  EXPECT_TRUE(eventually([&] {
    for (RawClient& peer : peers) peer.send("a");
    return server->connections() == 0;
  })) << "one byte now and then does not extend the deadline";
  EXPECT_TRUE(alive());
}

TEST_F(HostilePeers, ClosesSilentAndStalledConnections) {
  Limits limits = small_limits();
  limits.header = 200ms;
  limits.body = 200ms;
  start(limits);
  RawClient silent = client();
  RawClient stalled = client();
  stalled.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(silent.closed_by_server()) << "only who has asked something may be silent for as long as an idle peer";
  EXPECT_TRUE(stalled.closed_by_server());
}

TEST_F(HostilePeers, UnfinishedHandshakesLeaveNoSocketBehind) {
  Limits limits = small_limits();
  limits.handshake = 2s;
  start(limits, true);
  const auto before = open_descriptors();
  for (int i = 0; i < 300; ++i) {
    RawClient peer = client();
    if (i % 3 == 1) peer.send(std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01", 8));  // the start of a ClientHello
    if (i % 3 == 2) peer.send(get("/ok"));
  }
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; })) << open_descriptors() << " against " << before;
  RawClient peer = client();
  ASSERT_TRUE(peer.handshake());
  peer.send(get("/ok"));
  EXPECT_EQ(peer.status(), 200);
}

TEST_F(HostilePeers, AHandshakeThatStallsIsEnded) {
  Limits limits = small_limits();
  limits.handshake = 200ms;
  start(limits, true);
  RawClient peer = client();
  peer.send(std::string_view("\x16\x03\x01", 3));
  EXPECT_TRUE(peer.closed_by_server());
}

TEST_F(HostilePeers, TheConnectionBeyondTheLimitIsClosedAndTheOthersGoOn) {
  Limits limits = small_limits();
  limits.connections = 3;
  limits.idle = 5s;
  start(limits);
  std::vector<RawClient> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(client());
  ASSERT_TRUE(eventually([&] { return server->connections() == 3; }));
  RawClient fourth = client();
  EXPECT_TRUE(fourth.closed_by_server());
  peers[1].send(get("/ok"));
  EXPECT_EQ(peers[1].status(), 200);
}

TEST_F(HostilePeers, PeersThatKeepTheirConnectionsIdleDoNotKeepOthersOut) {
  Limits limits = small_limits();
  limits.connections = 3;
  limits.handler = kPatience;
  start(limits);
  RawClient busy = client();
  busy.send(post("/wait", ""));
  ASSERT_TRUE(eventually([&] { return running == 1; }));
  std::vector<RawClient> idle;
  for (int i = 0; i < 2; ++i) {
    idle.push_back(client());
    idle.back().send(get("/ok"));
    ASSERT_EQ(idle.back().status(), 200);
  }
  EXPECT_TRUE(eventually([&] { return alive(); }));
  EXPECT_TRUE(eventually([&] { return server->connections() == 2; })) << "only as many as needed are closed";
  release.set_value();
  EXPECT_EQ(busy.status(), 200) << "a request on its way is never cut off for a newcomer";
}

TEST_F(HostilePeers, PeersThatVanishMidBodyLeaveNothingBehind) {
  start();
  const auto before = open_descriptors();
  for (int i = 0; i < 100; ++i) {
    RawClient peer = client();
    peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  }
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; }));
}

}  // namespace
}  // namespace loadline::serve::testing
