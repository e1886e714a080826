#include "serve/accept.h"

#include <spdlog/spdlog.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

namespace loadline::serve {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

net::awaitable<void> accept_connections(tcp::acceptor& acceptor, net::io_context& io,
                                        std::function<void(tcp::socket)> take) {
  net::steady_timer pause(acceptor.get_executor());
  bool failed = false;
  while (acceptor.is_open()) {
    try {
      error_code error;
      if (std::exchange(failed, false)) {
        // Out of descriptors or memory, most likely: the next try would fail as fast, and the one after it.
        pause.expires_after(std::chrono::milliseconds(100));
        co_await pause.async_wait(net::redirect_error(net::use_awaitable, error));
      }
      tcp::socket socket(net::make_strand(io));
      co_await acceptor.async_accept(socket, net::redirect_error(net::use_awaitable, error));
      if (error == net::error::operation_aborted) co_return;
      failed = static_cast<bool>(error);
      if (!error) take(std::move(socket));
    } catch (const std::exception& fault) {
      failed = true;
      spdlog::error("accepting connections: {}", fault.what());
    } catch (...) {
      failed = true;
      spdlog::error("accepting connections: unknown exception");
    }
  }
}

}  // namespace loadline::serve
