#include "serve/accept.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <new>
#include <thread>

#include "tests/unit/serve/raw_client.h"

namespace loadline::serve::testing {
namespace {

using boost::asio::ip::tcp;

TEST(Accepting, GoesOnAfterWhateverAConnectionThrows) {
  boost::asio::io_context io;
  tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
  int taken = 0;
  const auto take = [&taken, &acceptor](tcp::socket) {
    ++taken;
    if (taken == 1) throw std::bad_alloc();
    if (taken == 2) throw 42;
    acceptor.close();
  };
  boost::asio::co_spawn(io, accept_connections(acceptor, io, take), boost::asio::detached);
  std::vector<RawClient> peers;
  for (int i = 0; i < 3; ++i) peers.emplace_back(acceptor.local_endpoint().port());
  io.run_for(kPatience);
  EXPECT_EQ(taken, 3);
}

}  // namespace
}  // namespace loadline::serve::testing
