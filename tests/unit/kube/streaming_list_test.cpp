// Lists that come as a stream: a watch tells all there is, marks the end, and goes on.
#include "tests/unit/kube/list_watch_fixture.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class StreamingListTest : public ListWatchTest {
 protected:
  StreamingListTest() {
    options_.stream_lists = true;
    begin();
    lists(list_body("10", {pod_json("a", "paged", "1")}));
  }
  static FakeTransport::WatchStep end_mark(const std::string& version, const nlohmann::json& mark = "true") {
    return event(
        "BOOKMARK",
        {{"kind", "Pod"},
         {"metadata", {{"resourceVersion", version}, {"annotations", {{"k8s.io/initial-events-end", mark}}}}}});
  }
  // Whether the list came in pages in the end.
  [[nodiscard]] bool paged() const { return transport_->count("GET") > 0; }
};

TEST_F(StreamingListTest, FillsTheStoreAtItsMarkAndTheSameWatchGoesOn) {
  transport_->stream_list({event("ADDED", pod_json("a", "p1", "700")), event("ADDED", pod_json("a", "p2", "3")),
                           end_mark("900"), event("ADDED", pod_json("a", "p3", "901")), FakeTransport::end()});
  step();
  EXPECT_EQ(loop_->state(), State::Streaming);
  EXPECT_THAT(last_watch(), AllOf(HasSubstr("sendInitialEvents=true"), HasSubstr("resourceVersionMatch=NotOlderThan"),
                                  HasSubstr("allowWatchBookmarks=true"), Not(HasSubstr("resourceVersion="))));
  steps(2);
  EXPECT_FALSE(store_.synced());
  EXPECT_EQ(metrics_.in_touch.value(), 0) << "what was told so far is not in the store";
  EXPECT_THAT(names(), IsEmpty());
  step();
  EXPECT_TRUE(store_.synced());
  EXPECT_EQ(metrics_.in_touch.value(), 1);
  EXPECT_EQ(loop_->state(), State::Watching);
  EXPECT_EQ(store_.resource_version(), "900") << "the mark's, not an object's";
  EXPECT_THAT(changes(), ElementsAre("+p1", "+p2"));
  steps(2);
  EXPECT_THAT(changes(), ElementsAre("+p3"));
  step();
  EXPECT_THAT(last_watch(), AllOf(HasSubstr("resourceVersion=901"), Not(HasSubstr("sendInitialEvents"))));
  EXPECT_FALSE(paged());
  EXPECT_EQ(metrics_.lists.value(), 1U);
  EXPECT_EQ(metrics_.streamed_lists.value(), 1U);
  EXPECT_EQ(metrics_.events.value(), 1U);
}

TEST_F(StreamingListTest, ChangesDuringTheStreamAreInItsResult) {
  transport_->stream_list({event("ADDED", pod_json("a", "p1", "1")), event("ADDED", pod_json("a", "p2", "2")),
                           event("MODIFIED", pod_json("a", "p1", "5")), event("DELETED", pod_json("a", "p2", "6")),
                           FakeTransport::line(bookmark("6")), end_mark("7")});
  steps(7);
  EXPECT_THAT(names(), ElementsAre("p1"));
  EXPECT_EQ(store_.get({"a", "p1"}).resource_version(), "5");
}

TEST_F(StreamingListTest, OnlyAMarkThatSaysTrueEndsIt) {
  transport_->stream_list({end_mark("5", "false"), end_mark("6", true), end_mark("7")});
  steps(3);
  EXPECT_FALSE(store_.synced());
  step();
  EXPECT_TRUE(store_.synced());
}

TEST_F(StreamingListTest, ProjectsItsObjects) {
  Store lean(resources::kPods, [](nlohmann::json& object) { object["spec"] = "lean"; });
  ListWatch loop(*client_, lean, options_, metrics_);
  transport_->stream_list({event("ADDED", pod_json("a", "p1", "1")), end_mark("2")});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loop.step({}), 0ms);
  EXPECT_EQ(lean.get({"a", "p1"}).json()["spec"], "lean");
}

TEST_F(StreamingListTest, ARefusalIsFollowedByPagesForGood) {
  for (const int status : {400, 422}) {
    options_.page_size = 500;
    begin();
    transport_->stream_list({refusal(status)});
    step();
    EXPECT_GT(step(), 0ms);
    step();
    EXPECT_THAT(names(), ElementsAre("paged"));
    const auto opened = transport_->watch_requests().size();
    transport_->watch({refusal(410)});
    steps(3);
    EXPECT_EQ(loop_->state(), State::Listed) << "listed in pages at once: " << status;
    EXPECT_EQ(transport_->watch_requests().size(), opened + 1);
    EXPECT_EQ(transport_->refused_streams(), 0);
  }
}

TEST_F(StreamingListTest, AStreamThatIsSilentBeforeItsMarkIsFollowedByPagesForGood) {
  transport_->stream_list({event("ADDED", pod_json("a", "p1", "1"))});
  steps(2);
  clock_->advance(9s);
  EXPECT_EQ(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Streaming);
  clock_->advance(1s);
  EXPECT_GT(step(), 0ms);
  step();
  EXPECT_THAT(names(), ElementsAre("paged")) << "nothing of the half stream";
  transport_->watch({refusal(410)});
  steps(3);
  EXPECT_TRUE(paged());
  EXPECT_EQ(transport_->refused_streams(), 0);
}

TEST_F(StreamingListTest, AServerThatHasNotAnsweredYetSaysNothingOfWhatItCanDo) {
  transport_->stream_list({});
  transport_->answer_watches(false);
  step();
  clock_->advance(25s);
  EXPECT_EQ(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Streaming) << "the transport ends what is never answered";
  transport_->answer_watches(true);
  clock_->advance(9s);
  EXPECT_EQ(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Streaming) << "silence counts from the answer";
  clock_->advance(1s);
  EXPECT_GT(step(), 0ms);
  EXPECT_EQ(loop_->state(), State::Empty);
}

TEST_F(StreamingListTest, AStreamThatBreaksIsFollowedByPagesOnce) {
  const std::vector<FakeTransport::WatchStep> ends{broken_connection(), FakeTransport::end(), refusal(500),
                                                   error_event(500, "InternalError"), FakeTransport::line("{odd")};
  for (const FakeTransport::WatchStep& end : ends) {
    begin();
    transport_->stream_list({event("ADDED", pod_json("a", "half", "1")), end});
    steps(2);
    EXPECT_GT(step(), 0ms);
    EXPECT_EQ(step(), 0ms);
    EXPECT_THAT(names(), ElementsAre("paged"));
    transport_->watch({refusal(410)});
    steps(2);
    transport_->stream_list({end_mark("50")});
    step();
    EXPECT_EQ(loop_->state(), State::Streaming) << "the next list is a stream again";
    step();
    EXPECT_THAT(names(), IsEmpty());
  }
}

TEST_F(StreamingListTest, A429WaitsAndStreamsAgain) {
  transport_->stream_list({refusal(429, 3s)});
  transport_->stream_list({end_mark("5")});
  step();
  EXPECT_GE(step(), 3s);
  steps(2);
  EXPECT_TRUE(store_.synced());
  EXPECT_FALSE(paged());
}

TEST_F(StreamingListTest, AnExpiredWatchIsFollowedByANewStreamThatDeletesWhatVanished) {
  transport_->stream_list({event("ADDED", pod_json("a", "p1", "1")), end_mark("2"), error_event(410, "Expired")});
  transport_->stream_list({event("ADDED", pod_json("a", "p2", "40")), end_mark("50")});
  steps(4);
  EXPECT_EQ(loop_->state(), State::Empty);
  EXPECT_THAT(names(), ElementsAre("p1")) << "the old copy serves until the new one is whole";
  changes();
  steps(3);
  EXPECT_THAT(changes(), ElementsAre("-p1", "+p2"));
  EXPECT_FALSE(paged());
}

TEST_F(StreamingListTest, SwitchedOffItIsNotAskedFor) {
  options_.stream_lists = false;
  begin();
  step();
  EXPECT_TRUE(paged());
  EXPECT_EQ(transport_->refused_streams(), 0);
}

}  // namespace
}  // namespace loadline::kube
