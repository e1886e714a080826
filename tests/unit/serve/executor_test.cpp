#include "serve/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

namespace loadline::serve {
namespace {

TEST(BoundedExecutor, RunsWhatItTakes) {
  std::atomic<int> ran{0};
  std::promise<void> done;
  BoundedExecutor executor(2, 100);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(executor.try_run([&] {
      if (++ran == 50) done.set_value();
    }));
  }
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(2)), std::future_status::ready);
}

TEST(BoundedExecutor, RefusesWhenAllThreadsAreBusyAndTheQueueIsFull) {
  std::promise<void> started;
  std::promise<void> release;
  BoundedExecutor executor(1, 1);
  ASSERT_TRUE(executor.try_run([&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_TRUE(executor.try_run([] {}));
  EXPECT_FALSE(executor.try_run([] {}));
  release.set_value();
}

TEST(BoundedExecutor, ATaskThatThrowsDoesNotEndItsThread) {
  std::promise<void> done;
  BoundedExecutor executor(1, 4);
  ASSERT_TRUE(executor.try_run([] { throw std::runtime_error("on purpose"); }));
  ASSERT_TRUE(executor.try_run([] { throw 42; }));
  ASSERT_TRUE(executor.try_run([&] { done.set_value(); }));
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(2)), std::future_status::ready);
}

TEST(BoundedExecutor, TakesNothingOnceStopped) {
  BoundedExecutor executor(1, 4);
  executor.stop();
  EXPECT_FALSE(executor.try_run([] {}));
}

}  // namespace
}  // namespace loadline::serve
