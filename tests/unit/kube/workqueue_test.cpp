#include "kube/workqueue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;

class WorkQueueTest : public testing::Test {
 protected:
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  WorkQueue queue_{{.clock = clock_}};
  const ObjectKey a_{"ns", "a"};
  const ObjectKey b_{"ns", "b"};
};

TEST_F(WorkQueueTest, HoldsAKeyOnceHoweverOftenItIsAdded) {
  for (int i = 0; i < 5; ++i) queue_.add(a_);
  queue_.add(b_);
  EXPECT_EQ(queue_.size(), 2U);
  EXPECT_EQ(queue_.get(), a_);
  EXPECT_EQ(queue_.get(), b_);
  EXPECT_EQ(queue_.size(), 0U);
}

TEST_F(WorkQueueTest, GivesAKeyAddedDuringItsWorkOutOnceMoreAfterDone) {
  queue_.add(a_);
  EXPECT_EQ(queue_.get(), a_);
  queue_.add(a_);
  queue_.add(a_);
  EXPECT_EQ(queue_.size(), 0U) << "never two workers on one key";
  queue_.done(a_);
  EXPECT_EQ(queue_.size(), 1U);
  EXPECT_EQ(queue_.get(), a_);
  queue_.done(a_);
  EXPECT_EQ(queue_.size(), 0U);
}

TEST_F(WorkQueueTest, OfTwoDelaysTheEarlierCounts) {
  queue_.add_after(a_, 10s);
  queue_.add_after(a_, 5s);
  queue_.add_after(a_, 20s);
  queue_.add_after(b_, 6s);
  clock_->advance(5s);
  EXPECT_EQ(queue_.get(), a_);
  queue_.done(a_);
  clock_->advance(1s);
  EXPECT_EQ(queue_.get(), b_);
  queue_.done(b_);
  EXPECT_EQ(queue_.metrics().delayed.value(), 0) << "the later times are forgotten";
}

TEST_F(WorkQueueTest, APlainAddLeavesADelayStanding) {
  queue_.add_after(a_, 10s);
  queue_.add(a_);
  EXPECT_EQ(queue_.get(), a_);
  queue_.done(a_);
  EXPECT_EQ(queue_.metrics().delayed.value(), 1);
  clock_->advance(10s);
  EXPECT_EQ(queue_.get(), a_);
}

TEST_F(WorkQueueTest, DelaysOfFailuresDoubleUntilForgotten) {
  const auto wait_for = [&](std::chrono::milliseconds delay) {
    queue_.add_rate_limited(a_);
    clock_->advance(delay - 1ms);
    queue_.add(b_);
    EXPECT_EQ(queue_.get(), b_) << "too early for a";
    queue_.done(b_);
    clock_->advance(1ms);
    EXPECT_EQ(queue_.get(), a_);
    queue_.done(a_);
  };
  wait_for(5ms);
  wait_for(10ms);
  wait_for(20ms);
  EXPECT_EQ(queue_.failures(a_), 3);
  queue_.forget(a_);
  EXPECT_EQ(queue_.failures(a_), 0);
  wait_for(5ms);
  for (int i = 0; i < 100; ++i) queue_.add_rate_limited(b_);
  queue_.forget(a_);
}

TEST_F(WorkQueueTest, ALongRowOfFailuresIsCapped) {
  for (int i = 0; i < 200; ++i) {
    queue_.add_rate_limited(a_);
    clock_->advance(300s);
    ASSERT_EQ(queue_.get(), a_);
    queue_.done(a_);
  }
}

TEST_F(WorkQueueTest, AWaitingWorkerWakesForADelayedKeyWhileTheOtherWorks) {
  std::atomic<int> got{0};
  std::vector<std::jthread> workers;
  std::atomic<bool> release{false};
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue_.get()) {
        ++got;
        if (*key == a_) {
          while (!release) std::this_thread::sleep_for(1ms);
        }
        queue_.done(*key);
      }
    });
  }
  queue_.add_after(b_, 1s);
  queue_.add(a_);
  while (got < 1) std::this_thread::sleep_for(1ms);
  clock_->advance(2s);
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (got < 2 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(got, 2);
  release = true;
  queue_.shut_down();
}

TEST_F(WorkQueueTest, AfterShutDownReadyKeysAreStillGivenOutAndNoNewOnesTaken) {
  queue_.add(a_);
  queue_.add_after(b_, 1s);
  queue_.shut_down();
  queue_.add(b_);
  EXPECT_EQ(queue_.get(), a_);
  EXPECT_EQ(queue_.get(), std::nullopt);
}

TEST_F(WorkQueueTest, ADrainDropsWhatWaitsAndWaitsForWhatIsInWork) {
  queue_.add(a_);
  queue_.add(b_);
  ASSERT_EQ(queue_.get(), a_);
  EXPECT_FALSE(queue_.shut_down_with_drain(10ms)) << "a is still in work";
  std::jthread worker([&] {
    std::this_thread::sleep_for(20ms);
    queue_.done(a_);
  });
  EXPECT_TRUE(queue_.shut_down_with_drain(10s));
  EXPECT_EQ(queue_.get(), std::nullopt);
}

TEST_F(WorkQueueTest, AWorkerThatAKeyThrowsAtGoesOnAndTriesTheKeyAgainLater) {
  queue_.add(a_);
  queue_.add(b_);
  std::vector<std::string> worked;
  int faults = 0;
  const auto work = [&](const ObjectKey& key) {
    worked.push_back(key.name);
    if (worked.size() == 1) throw std::runtime_error("odd");
    if (worked.size() == 2) throw 7;
    queue_.forget(key);
    if (worked.size() == 4) queue_.shut_down();
  };
  std::jthread time([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) clock_->advance(1ms);
  });
  work_off(queue_, work, [&] { ++faults; });
  EXPECT_EQ(faults, 2);
  EXPECT_EQ(std::multiset<std::string>(worked.begin(), worked.end()), (std::multiset<std::string>{"a", "a", "b", "b"}));
  EXPECT_EQ(queue_.metrics().processing.value(), 0);
}

TEST_F(WorkQueueTest, NoKeyIsWorkedOnTwiceAtOnceNorLost) {
  WorkQueue queue;
  constexpr int kKeys = 20;
  std::mutex mutex;
  std::map<std::string, int> working;
  std::atomic<int> worked{0};
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue.get()) {
        {
          const std::lock_guard lock(mutex);
          EXPECT_EQ(++working[key->name], 1);
        }
        ++worked;
        std::this_thread::yield();
        {
          const std::lock_guard lock(mutex);
          --working[key->name];
        }
        queue.done(*key);
      }
    });
  }
  {
    std::vector<std::jthread> adders;
    for (int t = 0; t < 2; ++t) {
      adders.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          queue.add({"", std::to_string(i % kKeys)});
          queue.add_after({"", std::to_string(i % kKeys)}, 1ms);
        }
      });
    }
  }
  std::this_thread::sleep_for(20ms);
  while (queue.size() > 0) std::this_thread::sleep_for(1ms);
  EXPECT_GE(worked, kKeys);
  EXPECT_TRUE(queue.shut_down_with_drain(10s));
}

}  // namespace
}  // namespace loadline::kube
