#include "kube/leader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "kube/lease.h"
#include "tests/unit/kube/eventually.h"
#include "tests/unit/kube/lease_server.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;

TEST(LeaseRules, AnothersLeaseIsJudgedOnlyByWhenWeSawItChange) {
  const Clock::Time now{1h};
  LeaseObservation seen{{.holder = "other", .duration_seconds = 15}, now};
  seen.record.renew_time = TimePoint{};  // its clock is decades behind ours: no matter
  EXPECT_FALSE(may_take(seen, "me", now + 14s, 15s));
  EXPECT_TRUE(may_take(seen, "me", now + 15s, 15s));
  EXPECT_TRUE(may_take(seen, "other", now, 15s));
  seen.record.holder.clear();
  EXPECT_TRUE(may_take(seen, "me", now, 15s));
}

TEST(LeaseRules, RenewingKeepsTheAcquireTimeAndTakingOverCounts) {
  const TimePoint wall{std::chrono::sys_days(std::chrono::year(2026) / 11 / 30)};
  const LeaseRecord first = next_record({}, "me", 15s, wall);
  EXPECT_EQ(first.transitions, 0);
  LeaseRecord stored = first;
  stored.resource_version = "1";
  const LeaseRecord renewed = next_record(stored, "me", 15s, wall + 2s);
  EXPECT_EQ(renewed.acquire_time, wall);
  EXPECT_EQ(renewed.renew_time, wall + 2s);
  const LeaseRecord taken = next_record(stored, "you", 15s, wall + 20s);
  EXPECT_EQ(taken.transitions, 1);
  EXPECT_EQ(taken.acquire_time, wall + 20s);
  EXPECT_EQ(read_lease(Object(lease_object({"ns", "lease"}, taken))), taken);
  EXPECT_TRUE(say_the_same(first, stored));
  EXPECT_FALSE(say_the_same(first, renewed));
}

class LeaderTest : public testing::Test {
 protected:
  LeaderTest() {
    transport_->handle([this](const Request& request) { return server_.answer(request); });
  }

  std::unique_ptr<LeaderElector> elector(const std::string& identity) {
    LeaderOptions options;
    options.lease = {"ns", "lease"};
    options.identity = identity;
    options.clock = clock_;
    options.on_started = [this] { ++started_; };
    options.on_stopped = [this] { ++stopped_; };
    return std::make_unique<LeaderElector>(client_, options);
  }

  // Lets the elector's thread act at each of many small steps of time.
  void pass(std::chrono::milliseconds time) {
    for (auto left = time; left > 0ms; left -= 500ms) {
      clock_->advance(500ms);
      std::this_thread::sleep_for(5ms);
    }
  }

  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::shared_ptr<FakeTransport> transport_ = std::make_shared<FakeTransport>();
  LeaseServer server_;
  Client client_{transport_, {.requests_per_second = 0, .reads = {}, .writes = {}, .clock = clock_}};
  std::atomic<int> started_{0};
  std::atomic<int> stopped_{0};
};

TEST_F(LeaderTest, TakesAFreeLeaseRenewsItAndGivesItBack) {
  const auto me = elector("me");
  ASSERT_TRUE(me->start().ok());
  ASSERT_TRUE(eventually([&] { return me->is_leader(); }));
  EXPECT_EQ(server_.holder(), "me");
  EXPECT_EQ(server_.lease()["spec"]["leaseDurationSeconds"], 15);
  const auto first = server_.lease()["spec"]["renewTime"];
  pass(20s);
  EXPECT_TRUE(me->is_leader());
  EXPECT_NE(server_.lease()["spec"]["renewTime"], first);
  me->stop();
  EXPECT_FALSE(me->is_leader());
  EXPECT_EQ(server_.holder(), "");
  EXPECT_EQ(server_.lease()["spec"]["leaseDurationSeconds"], 1);
  EXPECT_EQ(started_, 1);
  EXPECT_EQ(stopped_, 1);
}

TEST_F(LeaderTest, WaitsAWholeLeaseAfterTheLastChangeItSaw) {
  server_.set_holder("other");
  const auto me = elector("me");
  ASSERT_TRUE(me->start().ok());
  ASSERT_TRUE(eventually([&] { return me->holder() == "other"; }));
  pass(10s);
  server_.set_holder("other");  // it is alive
  pass(12s);
  EXPECT_FALSE(me->is_leader());
  clock_->jump_wall(std::chrono::hours(5));
  pass(2s);
  EXPECT_FALSE(me->is_leader()) << "the wall clock does not count";
  pass(20s);
  EXPECT_TRUE(eventually([&] { return me->is_leader(); }));
  EXPECT_EQ(server_.lease()["spec"]["leaseTransitions"], 1);
}

TEST_F(LeaderTest, AnyFailureToRenewCountsTowardsTheDeadline) {
  for (const int status : {403, 409, 422, 429, 500, 0}) {
    stopped_ = 0;
    server_.fail_with(std::nullopt);
    if (server_.lease().contains("metadata")) server_.set_holder("");
    const auto me = elector("me");
    ASSERT_TRUE(me->start().ok());
    ASSERT_TRUE(eventually([&] { return me->is_leader(); })) << status;
    server_.fail_with(status == 0 ? Answer<Response>(ApiError::transport(ApiError::kTimeout, ""))
                                  : FakeTransport::reply(status, ""));
    pass(9s);
    EXPECT_TRUE(me->is_leader()) << status;
    pass(4s);
    EXPECT_FALSE(me->is_leader()) << status;
    EXPECT_TRUE(eventually([&] {
      clock_->advance(500ms);
      return stopped_ == 1;
    })) << status;
  }
}

TEST_F(LeaderTest, StopsAtOnceWhenAnotherHasTakenTheLease) {
  const auto me = elector("me");
  ASSERT_TRUE(me->start().ok());
  ASSERT_TRUE(eventually([&] { return me->is_leader(); }));
  server_.set_holder("thief");
  EXPECT_TRUE(eventually([&] {
    clock_->advance(100ms);
    return stopped_ == 1;
  }));
  EXPECT_FALSE(me->is_leader());
  me->stop();
  EXPECT_EQ(server_.holder(), "thief") << "what is not ours is not released";
  EXPECT_EQ(stopped_, 1);
}

TEST_F(LeaderTest, OfTwoCandidatesOneLeadsAndTheOtherFollowsAtOnceAfterARelease) {
  auto one = elector("one");
  auto two = elector("two");
  ASSERT_TRUE(one->start().ok());
  ASSERT_TRUE(eventually([&] { return one->is_leader(); }));
  ASSERT_TRUE(two->start().ok());
  for (int i = 0; i < 20; ++i) {
    pass(1s);
    EXPECT_FALSE(one->is_leader() && two->is_leader());
  }
  EXPECT_TRUE(one->is_leader());
  one->stop();
  EXPECT_TRUE(eventually([&] {
    clock_->advance(500ms);
    return two->is_leader();
  }));
}

TEST_F(LeaderTest, ALeaderThatCannotStartItsWorkGivesTheLeaseBack) {
  LeaderOptions options;
  options.lease = {"ns", "lease"};
  options.identity = "me";
  options.clock = clock_;
  options.on_started = [] { throw std::runtime_error("no room for workers"); };
  options.on_stopped = [this] {
    ++stopped_;
    throw 7;  // and this does not end the process either
  };
  LeaderElector me(client_, options);
  ASSERT_TRUE(me.start().ok());
  EXPECT_TRUE(eventually([&] { return stopped_ == 1; }));
  me.stop();
  EXPECT_EQ(server_.holder(), "");
  EXPECT_EQ(server_.lease()["spec"]["leaseTransitions"], 0) << "it was held for a moment";
  EXPECT_EQ(stopped_, 1);
}

TEST_F(LeaderTest, AnExceptionInATryIsOneMoreFailureToRenew) {
  std::atomic<int> throws{1};
  transport_->handle([&](const Request& request) {
    if (throws-- > 0) throw std::bad_alloc();
    return server_.answer(request);
  });
  const auto me = elector("me");
  ASSERT_TRUE(me->start().ok());
  ASSERT_TRUE(eventually([&] {
    clock_->advance(100ms);
    return me->is_leader();
  }));
  throws = 1;
  pass(8s);
  EXPECT_TRUE(me->is_leader());
  EXPECT_EQ(stopped_, 0);
}

TEST_F(LeaderTest, AFaultOfWhoIsToldOfANewLeaderIsNotTheElectors) {
  server_.set_holder("other");
  LeaderOptions options;
  options.lease = {"ns", "lease"};
  options.identity = "me";
  options.clock = clock_;
  std::atomic<int> told{0};
  options.on_new_leader = [&](const std::string&) {
    ++told;
    throw std::runtime_error("a listener's fault");
  };
  LeaderElector me(client_, options);
  ASSERT_TRUE(me.start().ok());
  ASSERT_TRUE(eventually([&] { return told == 1; }));
  EXPECT_TRUE(eventually([&] {
    clock_->advance(500ms);
    return me.is_leader();
  }));
}

// Passes only while somebody waits, and then at once.
class LeapingClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  [[nodiscard]] TimePoint wall() const override { return TimePoint(std::chrono::floor<TimePoint::duration>(age())); }
  void wait_until(std::condition_variable&, std::unique_lock<std::mutex>&, Time until) override {
    const std::lock_guard lock(mutex_);
    now_ = std::max(now_, until);
  }
  [[nodiscard]] Duration age() const { return now() - kStart; }

 private:
  static constexpr Time kStart{1h};
  mutable std::mutex mutex_;
  Time now_{kStart};
};

// A server that takes its time. What its caller does not wait for is carried out all the same.
class SlowTransport final : public Transport {
 public:
  using Latency = std::function<std::chrono::milliseconds(Clock::Duration age, Method method)>;
  SlowTransport(std::shared_ptr<LeapingClock> clock, Latency latency)
      : clock_(std::move(clock)), latency_(std::move(latency)) {}

  Answer<Response> send(Request request, std::chrono::milliseconds timeout, std::stop_token) override {
    const auto latency = latency_(clock_->age(), request.method);
    if (latency > timeout) {
      late_.emplace_back(clock_->now() + latency, std::move(request));
      clock_->sleep_for(timeout, {});
      return ApiError::transport(ApiError::kTimeout, "too slow");
    }
    clock_->sleep_for(latency, {});
    std::erase_if(late_, [&](const auto& one) { return one.first <= clock_->now() && carry_out(one.second); });
    return server_.answer(request);
  }
  std::unique_ptr<WatchStream> open_watch(Request, std::chrono::milliseconds) override { return nullptr; }

 private:
  bool carry_out(const Request& request) {
    (void)server_.answer(request);
    return true;
  }

  const std::shared_ptr<LeapingClock> clock_;
  const Latency latency_;
  LeaseServer server_;
  std::vector<std::pair<Clock::Time, Request>> late_;
};

class SlowLeaderTest : public testing::Test {
 protected:
  // Leads for ten minutes, unless it loses the lease.
  void lead(std::shared_ptr<Transport> transport) {
    stopped_ = 0;
    Client client(std::move(transport), {.requests_per_second = 0, .clock = clock_});
    LeaderOptions options;
    options.lease = {"ns", "lease"};
    options.identity = "me";
    options.clock = clock_;
    options.on_started = [this] { ++started_; };
    options.on_stopped = [this] {
      lost_at_ = clock_->age();
      ++stopped_;
    };
    LeaderElector me(client, options);
    ASSERT_TRUE(me.start().ok());
    ASSERT_TRUE(eventually([&] { return stopped_ > 0 || clock_->age() > 10min; }));
    lost_ = stopped_ > 0;
  }

  std::shared_ptr<LeapingClock> clock_ = std::make_shared<LeapingClock>();
  std::atomic<int> started_{0};
  std::atomic<int> stopped_{0};
  std::atomic<Clock::Duration> lost_at_{Clock::Duration::zero()};
  bool lost_ = false;
};

TEST_F(SlowLeaderTest, SurvivesTenSecondsOfSlowWrites) {
  for (const auto slow : {2000ms, 2500ms, 3000ms, 3500ms, 4000ms, 4500ms, 5000ms}) {
    clock_ = std::make_shared<LeapingClock>();
    lead(std::make_shared<SlowTransport>(clock_, [slow](Clock::Duration age, Method method) {
      return age > 5s && age < 15s && method == Method::Put ? slow : 0ms;
    }));
    EXPECT_FALSE(lost_) << slow.count() << " ms";
  }
}

TEST_F(SlowLeaderTest, ARenewalWhoseAnswerIsLostCountsFromWhenItsWriteBegan) {
  LeaseServer server;
  std::atomic<Clock::Duration> lost_answer{Clock::Duration::zero()};
  const auto transport = std::make_shared<FakeTransport>();
  transport->handle([&](const Request& request) -> Answer<Response> {
    if (request.method != Method::Put) return server.answer(request);
    if (lost_answer.load() != Clock::Duration::zero()) return FakeTransport::reply(403, "");
    lost_answer = clock_->age();
    (void)server.answer(request);
    return ApiError::transport(ApiError::kTimeout, "");
  });
  lead(transport);
  EXPECT_TRUE(lost_);
  EXPECT_EQ(lost_at_.load(), lost_answer.load() + 10s) << "neither sooner nor later";
}

TEST_F(SlowLeaderTest, ALeaseThatIsWonSlowlyIsNotGivenUpAtOnce) {
  lead(std::make_shared<SlowTransport>(clock_, [](Clock::Duration age, Method) { return age < 9s ? 4500ms : 0ms; }));
  EXPECT_EQ(started_, 1);
  EXPECT_FALSE(lost_);
}

TEST_F(SlowLeaderTest, ALeaseThatIsWonTooSlowlyToRenewItIsRenewedBeforeTheWorkBegins) {
  LeaseServer server;
  const auto transport = std::make_shared<FakeTransport>();
  transport->handle([&](const Request& request) {
    if (request.method == Method::Post) clock_->sleep_for(9s, {});  // the process stood still
    return server.answer(request);
  });
  lead(transport);
  EXPECT_EQ(started_, 1);
  EXPECT_FALSE(lost_);
}

TEST_F(LeaderTest, RefusesTimesThatCannotWork) {
  LeaderOptions options;
  options.lease = {"ns", "lease"};
  options.identity = "me";
  options.renew_deadline = options.lease_duration;
  EXPECT_FALSE(LeaderElector(client_, options).start().ok());
  options.renew_deadline = options.retry_period;
  EXPECT_FALSE(LeaderElector(client_, options).start().ok());
  options = {};
  EXPECT_FALSE(LeaderElector(client_, options).start().ok());
}

}  // namespace
}  // namespace loadline::kube
