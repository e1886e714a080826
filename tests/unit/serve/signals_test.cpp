#include "serve/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

namespace loadline::serve {
namespace {

using namespace std::chrono_literals;

TEST(EndSignals, AreTakenByWhoWaitsAndEndNothingElse) {
  const EndSignals signals;
  std::atomic<bool> done{false};
  std::jthread idle([&done] { done.wait(false); });  // inherits the block, so no signal goes to it
  for (const int signal : {SIGTERM, SIGINT}) {
    EXPECT_FALSE(signals.wait_for(0ms));
    ASSERT_EQ(kill(getpid(), signal), 0);
    EXPECT_TRUE(signals.wait_for(10s)) << signal;
    EXPECT_FALSE(signals.wait_for(0ms)) << "each is taken once";
  }
  done = true;
  done.notify_all();
}

TEST(EndSignals, ThatCameBeforeTheWaitAreNotLost) {
  const EndSignals signals;
  ASSERT_EQ(raise(SIGTERM), 0);
  EXPECT_TRUE(signals.wait_for(1500ms));
}

TEST(EndSignals, LeaveAPeerThatHangsUpAsAnErrorOfTheWrite) {
  const EndSignals signals;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

}  // namespace
}  // namespace loadline::serve
