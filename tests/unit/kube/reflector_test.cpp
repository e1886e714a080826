// The Reflector with its thread: it stops at once from wherever it is, and nothing thrown at it ends it.
#include "kube/reflector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "tests/unit/kube/eventually.h"
#include "tests/unit/kube/fake_transport.h"
#include "tests/unit/kube/objects.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;

class ReflectorTest : public testing::Test {
 protected:
  void lists(Answer<Response> answer) { transport_->on("GET", "/api/v1/pods", std::move(answer)); }
  void lists(const std::string& body) { lists(FakeTransport::reply(200, body)); }
  void start(std::shared_ptr<Clock> clock = system_clock()) {
    reflector_ = std::make_unique<Reflector>(client_, store_, ReflectorOptions{.stream_lists = false, .clock = clock});
    reflector_->start();
  }
  bool watching() {
    return eventually([this] { return !transport_->watch_requests().empty(); });
  }
  // Far more than an immediate end takes, far less than any wait of the reflector.
  void stops_at_once() {
    const auto began = std::chrono::steady_clock::now();
    reflector_->stop();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 4s);
    EXPECT_EQ(transport_->open_streams(), 0);
  }

  std::shared_ptr<FakeTransport> transport_ = std::make_shared<FakeTransport>();
  Client client_{transport_, {.requests_per_second = 0, .reads = {}}};
  Store store_{resources::kPods};
  std::unique_ptr<Reflector> reflector_;
};

TEST_F(ReflectorTest, FollowsTheServerAndStopsAtOnce) {
  lists(list_body("10", {pod_json("a", "p1", "1")}));
  start();
  ASSERT_TRUE(store_.wait_synced(30s));
  ASSERT_TRUE(watching());
  transport_->push_line(watch_event("ADDED", pod_json("a", "p2", "11")));
  EXPECT_TRUE(eventually([&] { return store_.size() == 2; }));
  EXPECT_LT(reflector_->last_event_age(), 30s);
  stops_at_once();
  EXPECT_EQ(store_.size(), 2U);
}

TEST_F(ReflectorTest, StopsAtOnceFromASilentWatch) {
  lists(list_body("10", {}));
  start();
  ASSERT_TRUE(watching());
  stops_at_once();
}

TEST_F(ReflectorTest, StopsAtOnceFromALongWait) {
  lists(FakeTransport::reply(503, "", {{"retry-after", "30"}}));
  start();
  ASSERT_TRUE(eventually([&] { return reflector_->metrics().failures.value() > 0; }));
  const auto began = std::chrono::steady_clock::now();
  reflector_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

TEST_F(ReflectorTest, AListenerThatThrowsHurtsNobodyElse) {
  lists(list_body("10", {pod_json("a", "p1", "1")}));
  const Subscription faulty = store_.listen([](const Change&) { throw std::runtime_error("a listener's fault"); });
  const Subscription worse = store_.listen([](const Change&) { throw 7; });
  std::atomic<int> heard{0};
  const Subscription good = store_.listen([&](const Change&) { ++heard; });
  start();
  ASSERT_TRUE(watching());
  transport_->push_line(watch_event("ADDED", pod_json("a", "p2", "11")));
  EXPECT_TRUE(eventually([&] { return heard == 2; }));
  EXPECT_EQ(reflector_->metrics().lists.value(), 1U) << "nothing was lost, nothing is listed again";
}

TEST(ReflectorFault, AProjectionThatThrowsKeepsItsObjectAndTheOthers) {
  const auto transport = std::make_shared<FakeTransport>();
  transport->on("GET", "/",
                FakeTransport::reply(200, list_body("10", {pod_json("a", "odd", "1"), pod_json("a", "p", "2")})));
  Client client(transport, {.requests_per_second = 0});
  Store store(resources::kPods, [](nlohmann::json& object) {
    if (object["metadata"]["name"] == "odd") throw std::runtime_error("a projection's fault");
    object["spec"] = "lean";
  });
  Reflector reflector(client, store);
  reflector.start();
  ASSERT_TRUE(store.wait_synced(30s));
  EXPECT_TRUE(store.get({"a", "odd"}));
  EXPECT_EQ(store.get({"a", "p"}).json()["spec"], "lean");
}

TEST_F(ReflectorTest, AnExceptionInAStepIsFollowedByANewList) {
  const auto clock = std::make_shared<FakeClock>();
  std::atomic<int> asked{0};
  transport_->handle([&](const Request&) -> Answer<Response> {
    if (++asked == 1) throw std::bad_alloc();
    return FakeTransport::reply(200, list_body("10", {}));
  });
  start(clock);
  EXPECT_TRUE(eventually([&] {
    clock->advance(1s);
    return store_.synced();
  }));
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace loadline::kube
