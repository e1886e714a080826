#include "kube/events.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/unit/kube/fake_transport.h"
#include "tests/unit/kube/objects.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class EventsTest : public testing::Test {
 protected:
  EventsTest() {
    transport_->handle([this](const Request& request) -> Answer<Response> {
      const std::lock_guard lock(mutex_);
      if (throws_) throw std::bad_alloc();
      if (failure_ != 0) return FakeTransport::reply(failure_, "");
      if (request.method == Method::Patch && created_.empty()) return FakeTransport::reply(404, "");
      if (request.method == Method::Post) created_.push_back(json::parse(request.body));
      if (request.method == Method::Patch) patched_.push_back({request.target, json::parse(request.body)});
      return FakeTransport::reply(200, "{}");
    });
    EventOptions options;
    options.instance = "pod-1";
    options.clock = clock_;
    recorder_ = std::make_unique<EventRecorder>(client_, options);
  }

  // Waits until everything recorded so far was dealt with.
  void settle() {
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (recorder_->metrics().written.value() + recorder_->metrics().dropped.value() + joined_ <
               recorder_->metrics().recorded.value() &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(1ms);
    }
  }
  std::vector<json> created() {
    const std::lock_guard lock(mutex_);
    return created_;
  }
  // Somebody deletes all events.
  void forget_created() {
    const std::lock_guard lock(mutex_);
    created_.clear();
  }
  void set_throws(bool throws) {
    const std::lock_guard lock(mutex_);
    throws_ = throws;
  }
  std::vector<std::pair<std::string, json>> patched() {
    const std::lock_guard lock(mutex_);
    return patched_;
  }

  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::shared_ptr<FakeTransport> transport_ = std::make_shared<FakeTransport>();
  std::mutex mutex_;
  int failure_ = 0;
  bool throws_ = false;
  std::vector<json> created_;
  std::vector<std::pair<std::string, json>> patched_;
  std::uint64_t joined_ = 0;  // events that joined a series without a write of their own
  Client client_{transport_, {.requests_per_second = 0, .clock = clock_}};
  std::unique_ptr<EventRecorder> recorder_;
  const ObjectReference job_{"loadline.dev/v1alpha1", "TrainingJob", "team", "big", "u1", "7"};
};

TEST_F(EventsTest, AreCompleteAndWithinTheServersLimits) {
  recorder_->start();
  std::string note(1023, 'x');
  note += "\xE2\x82\xAC and more";
  recorder_->record(job_, {Event::Type::Warning, "GangRestarted", "CreateAttempt", note});
  recorder_->stop();
  ASSERT_EQ(created().size(), 1U);
  const json event = created()[0];
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "GangRestarted");
  EXPECT_EQ(event["action"], "CreateAttempt");
  EXPECT_EQ(event["reportingController"], "loadline.dev/operator");
  EXPECT_EQ(event["reportingInstance"], "pod-1");
  EXPECT_EQ(event["metadata"]["namespace"], "team");
  EXPECT_EQ(event["regarding"]["uid"], "u1");
  EXPECT_EQ(event["eventTime"].get<std::string>().size(), std::string("2026-11-30T00:00:00.000000Z").size());
  EXPECT_LE(event["note"].get<std::string>().size(), 1024U);
  EXPECT_NO_THROW((void)event.dump()) << "cut between code points";
  EXPECT_EQ(recorder_->metrics().written.value(), 1U);
}

TEST_F(EventsTest, AboutAClusterScopedObjectGoToTheDefaultNamespace) {
  recorder_->start();
  recorder_->record({"v1", "Node", "", "gpu-0", "n1", ""}, {Event::Type::Normal, "Seen", "", "hello"});
  recorder_->stop();
  ASSERT_EQ(created().size(), 1U);
  EXPECT_EQ(created()[0]["metadata"]["namespace"], "default");
  EXPECT_EQ(created()[0]["action"], "Seen");
}

TEST_F(EventsTest, RepeatsBecomeASeriesOfOneEvent) {
  recorder_->start();
  const Event event{Event::Type::Normal, "Waiting", "Wait", "no room yet"};
  for (int i = 0; i < 2; ++i) {
    recorder_->record(job_, event);
    settle();
  }
  ASSERT_EQ(created().size(), 1U);
  ASSERT_EQ(patched().size(), 1U) << "the first repeat shows at once";
  EXPECT_EQ(patched()[0].second["series"]["count"], 2);
  EXPECT_NE(patched()[0].first.find(created()[0]["metadata"]["name"].get<std::string>()), std::string::npos);
  for (int i = 0; i < 5; ++i) recorder_->record(job_, event);
  joined_ = 5;
  settle();
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(patched().size(), 1U) << "later ones with the heartbeat";
  clock_->advance(61s);
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (patched().size() < 2 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
  ASSERT_EQ(patched().size(), 2U);
  EXPECT_EQ(patched()[1].second["series"]["count"], 7);
}

TEST_F(EventsTest, AnotherNoteIsAnotherEventAndSoIsALateRepeat) {
  recorder_->start();
  recorder_->record(job_, {Event::Type::Normal, "Placed", "Place", "on pool a"});
  recorder_->record(job_, {Event::Type::Normal, "Placed", "Place", "on pool b"});
  settle();
  EXPECT_EQ(created().size(), 2U);
  clock_->advance(361s);
  recorder_->record(job_, {Event::Type::Normal, "Placed", "Place", "on pool a"});
  settle();
  EXPECT_EQ(created().size(), 3U);
  EXPECT_TRUE(patched().empty());
}

TEST_F(EventsTest, AnObjectThatSaysTooMuchIsCutOff) {
  recorder_->start();
  for (int i = 0; i < 40; ++i) recorder_->record(job_, {Event::Type::Normal, "Chatter", "", std::to_string(i)});
  settle();
  EXPECT_EQ(created().size(), 25U);
  EXPECT_EQ(recorder_->metrics().dropped.value(), 15U);
  clock_->advance(301s);
  recorder_->record(job_, {Event::Type::Normal, "Chatter", "", "once more"});
  settle();
  EXPECT_EQ(created().size(), 26U);
}

TEST_F(EventsTest, AFullQueueDropsAndNeverBlocks) {
  EventOptions options;
  options.queue_limit = 10;
  options.burst_per_object = 1000;
  EventRecorder idle(client_, options);  // not started: nobody empties it
  for (int i = 0; i < 100; ++i) idle.record(job_, {Event::Type::Normal, "R", "", std::to_string(i)});
  EXPECT_EQ(idle.metrics().dropped.value(), 90U);
}

TEST_F(EventsTest, ARepeatOfAnEventThatSomebodyDeletedIsWrittenAnew) {
  recorder_->start();
  const Event event{Event::Type::Normal, "Waiting", "Wait", "no room yet"};
  recorder_->record(job_, event);
  settle();
  ASSERT_EQ(created().size(), 1U);
  forget_created();
  recorder_->record(job_, event);
  settle();
  EXPECT_EQ(created().size(), 1U);
  EXPECT_TRUE(patched().empty());
  EXPECT_EQ(recorder_->metrics().dropped.value(), 0U);
}

TEST_F(EventsTest, AnExceptionLosesOneEventAndNoneOfTheLater) {
  recorder_->start();
  set_throws(true);
  recorder_->record(job_, {Event::Type::Normal, "Lost", "", "x"});
  settle();
  EXPECT_EQ(recorder_->metrics().dropped.value(), 1U);
  set_throws(false);
  recorder_->record(job_, {Event::Type::Normal, "Kept", "", "x"});
  settle();
  ASSERT_EQ(created().size(), 1U);
  EXPECT_EQ(created()[0]["reason"], "Kept");
}

TEST_F(EventsTest, ARefusedEventIsDroppedAndCounted) {
  failure_ = 403;
  recorder_->start();
  recorder_->record(job_, {Event::Type::Normal, "R", "", "x"});
  settle();
  EXPECT_EQ(recorder_->metrics().dropped.value(), 1U);
  EXPECT_EQ(recorder_->metrics().written.value(), 0U);
}

}  // namespace
}  // namespace loadline::kube
