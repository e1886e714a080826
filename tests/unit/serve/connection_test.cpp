// Whose place a newcomer gets.
#include "serve/connection.h"

#include <gtest/gtest.h>

#include <boost/asio/strand.hpp>

namespace loadline::serve {
namespace {

class Places : public ::testing::Test {
 protected:
  static ServerOptions options() {
    ServerOptions options{.name = "test", .listen = ""};
    options.limits.connections = 2;
    return options;
  }
  boost::asio::any_io_executor strand() { return boost::asio::make_strand(core.io); }

  Core core{options(), {}};
  Registered first{core, strand()};
};

TEST_F(Places, AreFreeBelowTheLimit) {
  EXPECT_TRUE(core.make_room());
  EXPECT_TRUE(core.keep_place(first.connection()));
}

TEST_F(Places, AreNotFreeWhenAllAreBusy) {
  const Registered second(core, strand());
  EXPECT_FALSE(core.make_room());
}

TEST_F(Places, TheLongestIdleOneIsGivenAwayAndClosed) {
  const Registered second(core, strand());
  bool closed = false;
  second.connection().close = [&closed] { closed = true; };
  core.offer_place(first.connection());
  EXPECT_TRUE(core.keep_place(first.connection()));
  core.offer_place(second.connection());
  core.offer_place(first.connection());
  EXPECT_TRUE(core.make_room());
  core.io.run();
  EXPECT_TRUE(closed);
  EXPECT_TRUE(core.keep_place(first.connection()));
  EXPECT_FALSE(core.keep_place(second.connection())) << "a request that arrives just then is not begun";
}

TEST_F(Places, OneIsGivenAwayOnce) {
  const Registered second(core, strand());
  core.offer_place(second.connection());
  EXPECT_TRUE(core.make_room());
  const Registered newcomer(core, strand());
  EXPECT_FALSE(core.make_room()) << "the one that leaves has not gone, and has no second place to give";
}

}  // namespace
}  // namespace loadline::serve
