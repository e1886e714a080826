#include "kube/list_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/kube/fake_transport.h"
#include "tests/unit/kube/objects.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;
using State = ListWatch::State;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ListWatchTest : public testing::Test {
 protected:
  ListWatchTest() {
    client_options_.clock = clock_;
    client_options_.requests_per_second = 0;
    client_options_.reads.max_tries = 1;
    client_ = std::make_unique<Client>(transport_, client_options_);
    options_.clock = clock_;
    options_.page_size = 2;
    loop_ = std::make_unique<ListWatch>(*client_, store_, options_, metrics_);
    subscription_ = store_.listen([this](const Change& change) {
      changes_.push_back((change.after ? change.before ? "~" : "+" : "-") + change.key.name);
    });
  }

  std::chrono::milliseconds step() { return loop_->step({}); }
  void lists(const std::string& body) { transport_->on("GET", "/api/v1/pods", FakeTransport::reply(200, body)); }
  void lists(Answer<Response> answer) { transport_->on("GET", "/api/v1/pods", std::move(answer)); }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const Object& object : store_.list()) out.push_back(object.name());
    return out;
  }

  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::shared_ptr<FakeTransport> transport_ = std::make_shared<FakeTransport>();
  ClientOptions client_options_;
  std::unique_ptr<Client> client_;
  Store store_{resources::kPods, {}, clock_};
  ReflectorOptions options_;
  ReflectorMetrics metrics_;
  std::unique_ptr<ListWatch> loop_;
  std::vector<std::string> changes_;
  Subscription subscription_;
};

TEST_F(ListWatchTest, ListsAllPagesAndThenWatchesFromTheListsVersion) {
  lists(list_body("10", {pod_json("a", "p1", "1"), pod_json("a", "p2", "2")}, "token/1"));
  lists(list_body("10", {pod_json("a", "p3", "3")}));
  EXPECT_EQ(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Listed);
  EXPECT_THAT(names(), ElementsAre("p1", "p2", "p3"));
  EXPECT_TRUE(store_.synced());
  EXPECT_EQ(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Watching);
  EXPECT_THAT(transport_->requests()[0].target, HasSubstr("limit=2"));
  EXPECT_THAT(transport_->requests()[0].target, Not(HasSubstr("resourceVersion")));
  EXPECT_THAT(transport_->requests()[1].target, HasSubstr("continue=token%2F1"));
  const std::string watch = transport_->watch_requests()[0].target;
  EXPECT_THAT(watch, HasSubstr("resourceVersion=10"));
  EXPECT_THAT(watch, HasSubstr("allowWatchBookmarks=true"));
  EXPECT_THAT(watch, HasSubstr("timeoutSeconds="));
}

TEST_F(ListWatchTest, TakesInEventsAndBookmarksAndGoesOnFromTheLast) {
  lists(list_body("10", {pod_json("a", "p1", "1")}));
  transport_->watch({FakeTransport::line(watch_event("ADDED", pod_json("a", "p2", "11"))),
                     FakeTransport::line(watch_event("MODIFIED", pod_json("a", "p1", "12"))),
                     FakeTransport::line(watch_event("DELETED", pod_json("a", "p2", "13"))),
                     FakeTransport::line(bookmark("20")), FakeTransport::end()});
  for (int i = 0; i < 7; ++i) EXPECT_EQ(step(), 0ms) << i;
  EXPECT_THAT(changes_, ElementsAre("+p1", "+p2", "~p1", "-p2"));
  EXPECT_EQ(loop_->state(), State::Listed) << "a clean end needs no list";
  EXPECT_EQ(store_.resource_version(), "20");
  step();
  EXPECT_THAT(transport_->watch_requests()[1].target, HasSubstr("resourceVersion=20"));
  EXPECT_EQ(metrics_.events.value(), 3U);
  EXPECT_EQ(metrics_.bookmarks.value(), 1U);
  EXPECT_EQ(metrics_.lists.value(), 1U);
}

TEST_F(ListWatchTest, Both410sLeadToANewListThatDeletesWhatVanished) {
  const std::vector<FakeTransport::WatchStep> refusals{
      FakeTransport::fail(ApiError::from_response(410, status_body(410, "Gone"))),
      FakeTransport::line(watch_event("ERROR", nlohmann::json::parse(status_body(410, "Expired"))))};
  for (const FakeTransport::WatchStep& refusal : refusals) {
    transport_->watch({refusal});
  }
  lists(list_body("10", {pod_json("a", "p1", "1"), pod_json("a", "p2", "2")}));
  lists(list_body("50", {pod_json("a", "p2", "40")}));
  lists(list_body("90", {pod_json("a", "p3", "80")}));
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(loop_->state(), State::Empty);
  EXPECT_THAT(names(), ElementsAre("p1", "p2")) << "the old copy serves until the new one is whole";
  changes_.clear();
  for (int i = 0; i < 3; ++i) step();
  EXPECT_THAT(changes_, ElementsAre("-p1", "~p2"));
  EXPECT_EQ(loop_->state(), State::Empty);
  step();
  EXPECT_THAT(names(), ElementsAre("p3"));
  EXPECT_EQ(metrics_.expired.value(), 2U);
}

TEST_F(ListWatchTest, APageLostOnTheWayStartsTheListAgainAndShowsNothingHalf) {
  lists(list_body("10", {pod_json("a", "p1", "1")}, "t"));
  lists(FakeTransport::reply(410, status_body(410, "Expired")));
  lists(list_body("20", {pod_json("a", "p9", "15")}));
  EXPECT_GT(step(), 0ms);
  EXPECT_EQ(store_.size(), 0U);
  EXPECT_FALSE(store_.synced());
  EXPECT_EQ(step(), 0ms);
  EXPECT_THAT(names(), ElementsAre("p9"));
}

TEST_F(ListWatchTest, A429OnTheWatchWaitsAndDoesNotList) {
  lists(list_body("10", {}));
  transport_->watch({FakeTransport::fail(ApiError::from_response(429, "", 7s))});
  step();
  step();
  EXPECT_GE(step(), 7s);
  EXPECT_EQ(loop_->state(), State::Listed);
  EXPECT_EQ(transport_->count("GET"), 1U);
}

TEST_F(ListWatchTest, ATransientErrorInTheStreamWatchesAgainFromTheLastVersion) {
  lists(list_body("10", {}));
  transport_->watch(
      {FakeTransport::line(watch_event("ADDED", pod_json("a", "p", "12"))),
       FakeTransport::line(watch_event("ERROR", nlohmann::json::parse(status_body(500, "InternalError"))))});
  for (int i = 0; i < 3; ++i) step();
  EXPECT_GT(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Listed);
  step();
  EXPECT_THAT(transport_->watch_requests().back().target, HasSubstr("resourceVersion=12"));
}

TEST_F(ListWatchTest, WatchesThatEndAtOnceBackOffAndInTheEndListAnew) {
  lists(list_body("10", {}));
  step();
  std::chrono::milliseconds last = 0ms;
  for (int i = 1; i <= 5; ++i) {
    transport_->watch({FakeTransport::end()});
    EXPECT_EQ(step(), 0ms);
    last = step();
    EXPECT_GE(last, 400ms * (1 << (i - 1))) << "no busy loop";
    EXPECT_EQ(loop_->state(), i < 5 ? State::Listed : State::Empty);
  }
}

TEST_F(ListWatchTest, BackoffStartsSmallAgainAfterTwoGoodMinutes) {
  lists(ApiError::transport(ApiError::kConnection, "refused"));
  for (int i = 0; i < 10; ++i) step();
  EXPECT_GE(step(), 15s);
  clock_->advance(3min);
  EXPECT_LE(step(), 800ms);
}

TEST_F(ListWatchTest, AnEventItCannotReadIsNeverSkipped) {
  for (const std::string& line :
       {std::string("{\"type\":\"ADD"), std::string("[]"), watch_event("ADDED", 7),
        watch_event("STRANGE", pod_json("a", "p", "1")), watch_event("ADDED", {{"metadata", {{"name", "x"}}}})}) {
    lists(list_body("10", {}));
    step();
    transport_->watch({FakeTransport::line(line)});
    step();
    EXPECT_GT(step(), 0ms) << line;
    EXPECT_EQ(loop_->state(), State::Empty) << line;
  }
  EXPECT_EQ(metrics_.bad_lines.value(), 5U);
}

TEST_F(ListWatchTest, OneObjectThatNestsTooDeepDoesNotHideTheOthers) {
  nlohmann::json deep;
  nlohmann::json* at = &deep;
  for (int i = 0; i < 1000; ++i) at = &(*at)["x"];
  nlohmann::json odd = pod_json("a", "odd", "2");
  odd["spec"] = deep;
  lists(list_body("10", {odd, pod_json("a", "p", "1")}));
  step();
  EXPECT_THAT(names(), ElementsAre("odd", "p"));
}

TEST_F(ListWatchTest, ADeletedAndRecreatedObjectIsOneChangeOfUid) {
  lists(list_body("10", {pod_json("a", "p", "1", "first")}));
  transport_->watch({FakeTransport::line(watch_event("ADDED", pod_json("a", "p", "12", "second")))});
  std::vector<std::pair<std::string, std::string>> uids;
  const Subscription listening =
      store_.listen([&](const Change& c) { uids.emplace_back(c.before.uid(), c.after.uid()); });
  for (int i = 0; i < 3; ++i) step();
  EXPECT_THAT(uids, ElementsAre(std::pair<std::string, std::string>("", "first"),
                                std::pair<std::string, std::string>("first", "second")));
}

TEST_F(ListWatchTest, ReflectorFollowsTheServerAndStopsAtOnce) {
  lists(list_body("10", {pod_json("a", "p1", "1")}));
  options_.clock = system_clock();
  Reflector reflector(*client_, store_, options_);
  reflector.start();
  ASSERT_TRUE(store_.wait_synced(10s));
  while (transport_->watch_requests().empty()) std::this_thread::sleep_for(1ms);
  std::atomic<bool> seen{false};
  const Subscription listening = store_.listen([&](const Change& change) { seen = seen || change.key.name == "p2"; });
  transport_->push_line(watch_event("ADDED", pod_json("a", "p2", "11")));
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (!seen && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(seen);
  EXPECT_LT(reflector.last_event_age(), 10s);
  const auto began = std::chrono::steady_clock::now();
  reflector.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 500ms);
  EXPECT_EQ(store_.size(), 2U);
}

TEST_F(ListWatchTest, ReflectorStopsAtOnceFromALongWaitToo) {
  lists(ApiError::transport(ApiError::kConnection, "refused"));
  options_.clock = system_clock();
  Reflector reflector(*client_, store_, options_);
  reflector.start();
  while (reflector.metrics().failures.value() == 0) std::this_thread::sleep_for(1ms);
  const auto began = std::chrono::steady_clock::now();
  reflector.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 300ms);
}

}  // namespace
}  // namespace loadline::kube
