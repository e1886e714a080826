// Lists in pages, watches, and what goes wrong with them. docs/testing.md says which test stands for which of
// client-go's.
#include "kube/list_watch.h"

#include "tests/unit/kube/list_watch_fixture.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(ListWatchTest, ListsAllPagesAndThenWatchesFromTheListsVersion) {
  lists(list_body("10", {pod_json("a", "p1", "1"), pod_json("a", "p2", "2")}, "token/1"));
  lists(list_body("10", {pod_json("a", "p3", "3"), pod_json("a", "p4", "4")}, "token/2"));
  lists(list_body("10", {pod_json("a", "p5", "5")}));
  EXPECT_EQ(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Listed);
  EXPECT_THAT(names(), ElementsAre("p1", "p2", "p3", "p4", "p5"));
  EXPECT_TRUE(store_.synced());
  EXPECT_EQ(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Watching);
  EXPECT_THAT(transport_->requests()[0].target, AllOf(HasSubstr("limit=2"), Not(HasSubstr("resourceVersion"))));
  EXPECT_THAT(transport_->requests()[1].target, AllOf(HasSubstr("limit=2"), HasSubstr("continue=token%2F1")));
  EXPECT_THAT(transport_->requests()[2].target, HasSubstr("continue=token%2F2"));
  EXPECT_THAT(last_watch(), AllOf(HasSubstr("resourceVersion=10"), HasSubstr("allowWatchBookmarks=true"),
                                  Not(HasSubstr("sendInitialEvents"))));
}

TEST_F(ListWatchTest, AWatchHasARandomTimeAndIsGivenUpTenSecondsAfterIt) {
  lists(list_body("10", {}));
  std::set<std::chrono::milliseconds> times;
  for (int i = 0; i < 20; ++i) {
    transport_->watch({event("ADDED", pod_json("a", "p", std::to_string(11 + i))), FakeTransport::end()});
    steps(4);
    const auto idle = transport_->idle_times().back();
    EXPECT_GE(idle, options_.min_watch + 10s);
    EXPECT_LE(idle, options_.max_watch + 10s);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(idle - 10s).count();
    EXPECT_THAT(last_watch(), HasSubstr("timeoutSeconds=" + std::to_string(seconds)));
    times.insert(idle);
  }
  EXPECT_GT(times.size(), 1U) << "or all watches of a restarted server come back at once";
}

TEST_F(ListWatchTest, AWatchThatTricklesWithoutALineIsGivenUpToo) {
  lists(list_body("10", {}));
  steps(2);
  EXPECT_EQ(step(), 0ms);
  clock_->advance(options_.max_watch + 31s);
  EXPECT_GT(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Listed);
  EXPECT_EQ(transport_->open_streams(), 0);
}

TEST_F(ListWatchTest, TakesInEventsAndBookmarksAndGoesOnFromTheLast) {
  lists(list_body("10", {pod_json("a", "p1", "1")}));
  transport_->watch({event("ADDED", pod_json("a", "p2", "11")), event("MODIFIED", pod_json("a", "p1", "12")),
                     FakeTransport::line(bookmark("15")), event("DELETED", pod_json("a", "p2", "17")),
                     FakeTransport::line(bookmark("20")), FakeTransport::end()});
  steps(2);
  std::vector<std::string> versions;
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(step(), 0ms) << i;
    versions.push_back(store_.resource_version());
  }
  EXPECT_THAT(versions, ElementsAre("11", "12", "15", "17", "20", "20"));
  EXPECT_THAT(changes_, ElementsAre("+p1", "+p2", "~p1", "-p2")) << "a bookmark is no change";
  EXPECT_EQ(loop_->state(), State::Listed) << "a clean end needs no list";
  step();
  EXPECT_THAT(last_watch(), HasSubstr("resourceVersion=20"));
  EXPECT_EQ(metrics_.events.value(), 3U);
  EXPECT_EQ(metrics_.bookmarks.value(), 2U);
  EXPECT_EQ(metrics_.lists.value(), 1U);
}

TEST_F(ListWatchTest, ProjectsWhatListsAndEventsBring) {
  Store lean(resources::kPods, [](nlohmann::json& object) { object["spec"] = "lean"; });
  ListWatch loop(*client_, lean, options_, metrics_);
  lists(list_body("10", {pod_json("a", "p1", "1")}));
  transport_->watch({event("ADDED", pod_json("a", "p2", "11"))});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loop.step({}), 0ms);
  for (const Object& pod : lean.list()) EXPECT_EQ(pod.json()["spec"], "lean") << pod.name();
  EXPECT_EQ(lean.size(), 2U);
}

TEST_F(ListWatchTest, Both410sLeadToANewListThatDeletesWhatVanished) {
  transport_->watch({FakeTransport::fail(ApiError::from_response(410, status_body(410, "Gone")))});
  transport_->watch({error_event(410, "Expired")});
  lists(list_body("10", {pod_json("a", "p1", "1"), pod_json("a", "p2", "2")}));
  lists(list_body("50", {pod_json("a", "p2", "40")}));
  lists(list_body("90", {pod_json("a", "p3", "80")}));
  steps(3);
  EXPECT_EQ(loop_->state(), State::Empty);
  EXPECT_THAT(names(), ElementsAre("p1", "p2")) << "the old copy serves until the new one is whole";
  changes();
  steps(3);
  EXPECT_THAT(changes(), ElementsAre("-p1", "~p2"));
  EXPECT_EQ(loop_->state(), State::Empty);
  step();
  EXPECT_THAT(names(), ElementsAre("p3"));
  EXPECT_EQ(metrics_.expired.value(), 2U);
  for (const Request& list : transport_->requests()) {
    EXPECT_THAT(list.target, Not(HasSubstr("resourceVersion"))) << "the newest, so that time never goes back";
  }
}

TEST_F(ListWatchTest, IsInTouchFromItsListToTheFirstTroubleAndOnceItIsToldOfChangesAgain) {
  transport_->watch({FakeTransport::fail(ApiError::transport(ApiError::kConnection, "reset"))});
  transport_->watch({error_event(410, "Expired")});
  transport_->watch({FakeTransport::fail(ApiError::transport(ApiError::kConnection, "reset"))});
  transport_->watch({event("ADDED", pod_json("a", "p2", "60"))});
  lists(list_body("10", {pod_json("a", "p1", "1")}));
  lists(list_body("50", {pod_json("a", "p1", "1")}));
  const auto in_touch = [this] { return metrics_.in_touch.value() == 1; };
  EXPECT_FALSE(in_touch());
  step();
  EXPECT_TRUE(in_touch());
  steps(2);
  EXPECT_FALSE(in_touch()) << "the connection broke";
  step();
  EXPECT_EQ(loop_->state(), State::Watching);
  EXPECT_FALSE(in_touch()) << "a watch that was opened has told nothing yet";
  step();
  EXPECT_EQ(loop_->state(), State::Empty);
  EXPECT_FALSE(in_touch()) << "410";
  step();
  EXPECT_TRUE(in_touch()) << "a new list";
  steps(2);
  EXPECT_FALSE(in_touch());
  steps(2);
  EXPECT_TRUE(in_touch()) << "an event";
}

TEST_F(ListWatchTest, IsInTouchAgainOnceAWatchIsAnsweredAndHasNothingToTell) {
  lists(list_body("10", {}));
  step();
  transport_->answer_watches(false);
  transport_->watch({FakeTransport::fail(ApiError::transport(ApiError::kConnection, "reset"))});
  steps(2);
  ASSERT_EQ(metrics_.in_touch.value(), 0);
  steps(2);
  EXPECT_EQ(metrics_.in_touch.value(), 0) << "no answer yet";
  transport_->answer_watches(true);
  step();
  EXPECT_EQ(metrics_.in_touch.value(), 1);
}

TEST_F(ListWatchTest, IsOutOfTouchWhileTheNextWatchIsNotAnsweredThoughTheLastOneEndedWell) {
  lists(list_body("10", {}));
  transport_->watch({event("ADDED", pod_json("a", "p1", "11")), FakeTransport::end()});
  steps(4);
  ASSERT_EQ(loop_->state(), State::Listed);
  ASSERT_EQ(metrics_.in_touch.value(), 1);
  transport_->answer_watches(false);
  steps(2);
  EXPECT_EQ(metrics_.in_touch.value(), 0);
}

TEST_F(ListWatchTest, AVersionThatTheServerDoesNotKnowLeadsToANewList) {
  const std::string restored = R"({"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version",
      "details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}})";
  lists(list_body("50", {pod_json("a", "p1", "40")}));
  lists(list_body("20", {pod_json("a", "p1", "15")}));
  transport_->watch({FakeTransport::fail(ApiError::from_response(504, restored))});
  steps(3);
  EXPECT_EQ(loop_->state(), State::Empty);
  step();
  EXPECT_EQ(store_.get({"a", "p1"}).resource_version(), "15") << "a server restored from a backup is believed";
  step();
  EXPECT_THAT(last_watch(), HasSubstr("resourceVersion=20"));
}

TEST_F(ListWatchTest, AnObjectThatTheServerCannotReadIsGoneAfterANewList) {
  lists(list_body("3", {pod_json("a", "p1", "1")}));
  lists(list_body("5", {pod_json("a", "p1", "1")}));
  transport_->watch({event("ADDED", pod_json("a", "corrupt", "4")), error_event(500, "StoreReadError")});
  steps(4);
  EXPECT_EQ(loop_->state(), State::Empty) << "from this version every watch would end so";
  EXPECT_THAT(names(), ElementsAre("corrupt", "p1"));
  step();
  EXPECT_THAT(names(), ElementsAre("p1"));
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

TEST_F(ListWatchTest, PagesThatExpireAreFollowedByOneListInOne) {
  lists(list_body("10", {pod_json("a", "p1", "1")}, "t"));
  lists(FakeTransport::reply(410, status_body(410, "Expired")));
  lists(list_body("20", {pod_json("a", "p1", "1")}));
  transport_->watch({refusal(410)});
  steps(5);
  const std::vector<Request> requests = transport_->requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_THAT(requests[2].target, Not(HasSubstr("limit")));
  EXPECT_THAT(requests[3].target, HasSubstr("limit=2"));
}

TEST_F(ListWatchTest, AListWithoutAVersionIsNone) {
  lists(R"({"kind":"PodList","metadata":{},"items":[]})");
  EXPECT_GT(step(), 0ms);
  EXPECT_FALSE(store_.synced());
  EXPECT_EQ(loop_->state(), State::Empty);
}

TEST_F(ListWatchTest, A429OnTheWatchWaitsAndDoesNotList) {
  lists(list_body("10", {}));
  steps(1);
  for (int i = 0; i < 6; ++i) {
    transport_->watch({i % 2 == 0 ? refusal(429, 7s) : error_event(429, "TooManyRequests")});
    step();
    EXPECT_GE(step(), i % 2 == 0 ? 7s : 0s);
    EXPECT_EQ(loop_->state(), State::Listed) << i;
  }
  EXPECT_EQ(transport_->count("GET"), 1U);
}

TEST_F(ListWatchTest, RefusedConnectionsBackOffAndDoNotList) {
  lists(list_body("10", {}));
  step();
  for (int i = 0; i < 12; ++i) {
    transport_->watch({broken_connection()});
    step();
    const auto wait = step();
    EXPECT_GE(wait, std::min<std::chrono::milliseconds>(15s, 400ms * (1 << std::min(i, 10)))) << i;
    EXPECT_LE(wait, 30s);
    EXPECT_EQ(loop_->state(), State::Listed) << i;
  }
  EXPECT_EQ(transport_->count("GET"), 1U) << "a list would only add to the load of a server that comes up";
}

TEST_F(ListWatchTest, ATransientErrorInTheStreamWatchesAgainFromTheLastVersion) {
  lists(list_body("10", {}));
  transport_->watch({event("ADDED", pod_json("a", "p", "12")), error_event(500, "InternalError")});
  steps(3);
  EXPECT_GT(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Listed);
  EXPECT_EQ(transport_->open_streams(), 0) << "its connection is closed";
  step();
  EXPECT_THAT(last_watch(), HasSubstr("resourceVersion=12"));
}

TEST_F(ListWatchTest, WatchesThatBringNothingButErrorsEndInANewList) {
  for (const FakeTransport::WatchStep& error : {error_event(500, "InternalError"), refusal(403), refusal(503)}) {
    options_.page_size = 500;
    begin();
    lists(list_body("10", {}));
    step();
    for (int i = 1; i <= 5; ++i) {
      transport_->watch({error});
      steps(2);
      EXPECT_EQ(loop_->state(), i < 5 ? State::Listed : State::Empty) << i;
    }
  }
}

TEST_F(ListWatchTest, WatchesThatEndAtOnceBackOffAndInTheEndListAnew) {
  lists(list_body("10", {}));
  step();
  for (int i = 1; i <= 5; ++i) {
    transport_->watch({FakeTransport::end()});
    EXPECT_EQ(step(), 0ms);
    EXPECT_GE(step(), 400ms * (1 << (i - 1))) << "no busy loop";
    EXPECT_EQ(loop_->state(), i < 5 ? State::Listed : State::Empty);
  }
}

TEST_F(ListWatchTest, AQuietWatchThatEndsInItsTimeIsNoTrouble) {
  lists(list_body("10", {}));
  steps(2);
  clock_->advance(150s);
  loop_->cancel();  // the server's clean end looks the same
  EXPECT_EQ(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Listed);
  EXPECT_EQ(metrics_.failures.value(), 0U);
}

TEST_F(ListWatchTest, BackoffStartsSmallAgainAfterTwoGoodMinutes) {
  lists(ApiError::transport(ApiError::kConnection, "refused"));
  steps(10);
  EXPECT_GE(step(), 15s);
  clock_->advance(3min);
  EXPECT_LE(step(), 800ms);
}

TEST_F(ListWatchTest, AnEventItCannotReadIsNeverSkipped) {
  const nlohmann::json table = {
      {"kind", "Table"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", {{"resourceVersion", "11"}}}};
  const std::vector<std::string> odd{"{\"type\":\"ADD",
                                     "[]",
                                     R"({"type":"ADDED"})",
                                     watch_event("ADDED", 7),
                                     watch_event("STRANGE", pod_json("a", "p", "1")),
                                     watch_event("ADDED", {{"metadata", {{"name", "x"}}}}),
                                     watch_event("ADDED", table),
                                     watch_event("BOOKMARK", nlohmann::json::object())};
  for (const std::string& line : odd) {
    lists(list_body("10", {}));
    step();
    transport_->watch({FakeTransport::line(line)});
    step();
    EXPECT_GT(step(), 0ms) << line;
    EXPECT_EQ(loop_->state(), State::Empty) << line;
  }
  EXPECT_EQ(metrics_.bad_lines.value(), odd.size());
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
  transport_->watch({event("ADDED", pod_json("a", "p", "12", "second"))});
  std::vector<std::pair<std::string, std::string>> uids;
  const Subscription listening =
      store_.listen([&](const Change& c) { uids.emplace_back(c.before.uid(), c.after.uid()); });
  steps(3);
  EXPECT_THAT(uids, ElementsAre(std::pair<std::string, std::string>("", "first"),
                                std::pair<std::string, std::string>("first", "second")));
}

// What the server has to say in one round, and what must be in the store after it.
struct Round {
  const char* what;
  Answer<Response> list;
  std::vector<FakeTransport::WatchStep> watch;
  std::vector<std::string> store;
};

TEST_F(ListWatchTest, RoundsOfListsAndWatchesWithErrorsAlwaysLeaveTheServersState) {
  const auto listed = [](const std::string& version, std::vector<nlohmann::json> pods) {
    return FakeTransport::reply(200, list_body(version, std::move(pods)));
  };
  const nlohmann::json foo = pod_json("a", "foo", "2");
  const nlohmann::json bar = pod_json("a", "bar", "3");
  const nlohmann::json qux = pod_json("a", "qux", "5");
  const std::vector<Round> rounds{
      {"an empty list", listed("1", {}), {event("ADDED", foo), event("ADDED", bar), refusal(410)}, {"bar", "foo"}},
      {"the same again",
       listed("3", {foo, bar}),
       {event("DELETED", pod_json("a", "foo", "4")), event("ADDED", qux), refusal(410)},
       {"bar", "qux"}},
      {"a list that fails", FakeTransport::reply(500, ""), {}, {"bar", "qux"}},
      {"a watch that fails", listed("5", {bar, qux}), {refusal(410)}, {"bar", "qux"}},
      {"an addition",
       listed("5", {bar, qux}),
       {event("ADDED", pod_json("a", "baz", "6")), refusal(410)},
       {"bar", "baz", "qux"}},
      {"a list that knows more than the last watch", listed("9", {qux}), {refusal(410)}, {"qux"}},
  };
  for (const Round& round : rounds) {
    lists(round.list);
    if (!round.watch.empty()) transport_->watch(round.watch);
  }
  for (const Round& round : rounds) {
    do {
      step();
    } while (loop_->state() != State::Empty);
    EXPECT_EQ(names(), round.store) << round.what;
  }
}

TEST_F(ListWatchTest, AskedToStopItSendsNothing) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(loop_->step(stop.get_token()), 0ms);
  lists(list_body("10", {}));
  step();
  EXPECT_EQ(loop_->step(stop.get_token()), 0ms);
  EXPECT_EQ(transport_->requests().size(), 1U);
  EXPECT_THAT(transport_->watch_requests(), IsEmpty());
}

TEST_F(ListWatchTest, AStopBetweenOpeningAndReadingEndsTheWatchAndIsNoTrouble) {
  lists(list_body("10", {}));
  steps(2);
  std::stop_source stop;
  stop.request_stop();
  loop_->cancel();
  EXPECT_EQ(loop_->step(stop.get_token()), 0ms);
  EXPECT_EQ(metrics_.failures.value(), 0U);
  loop_.reset();
  EXPECT_EQ(transport_->open_streams(), 0);
}

TEST_F(ListWatchTest, StartingOverTrustsOnlyANewList) {
  lists(list_body("10", {pod_json("a", "p", "1")}));
  steps(2);
  loop_->start_over();
  EXPECT_EQ(loop_->state(), State::Empty);
  EXPECT_EQ(transport_->open_streams(), 0);
  EXPECT_THAT(names(), ElementsAre("p")) << "the copy serves meanwhile";
}

}  // namespace
}  // namespace loadline::kube
