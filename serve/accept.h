// The loop that takes connections in. Internal to serve/.
//
// Thread-safety: runs on the acceptor's executor.
// Ownership: acceptor, `io` and what `take` refers to must outlive the coroutine.
// Errors: none end the loop, whatever throws: the port would stay bound, with nobody behind it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>

namespace loadline::serve {

/// Hands each connection, on a strand of its own in `io`, to `take`, until the acceptor is closed.
[[nodiscard]] boost::asio::awaitable<void> accept_connections(boost::asio::ip::tcp::acceptor& acceptor,
                                                              boost::asio::io_context& io,
                                                              std::function<void(boost::asio::ip::tcp::socket)> take);

}  // namespace loadline::serve
