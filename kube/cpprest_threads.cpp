// The threads that run cpprestsdk.
#include <pplx/threadpool.h>
#include <spdlog/spdlog.h>

#include <array>
#include <thread>

#include "kube/cpprest_transport.h"
#include "kube/io_thread.h"
#include "kube/system_cas.h"

namespace loadline::kube {
namespace {

// Two threads are the fastest on few cores and enough for a dozen watches: they only move bytes.
constexpr int kIoThreads = 2;

class IoThreads {
 public:
  IoThreads() {
    // Threads of the library's own would end the process on any exception; so it gets none.
    crossplat::threadpool::initialize_with_threads(0);
    boost::asio::io_service& service = crossplat::threadpool::shared_instance().service();
    for (std::thread& thread : threads_) thread = std::thread([&service] { run(service); });
  }
  ~IoThreads() {
    crossplat::threadpool::shared_instance().service().stop();
    for (std::thread& thread : threads_) thread.join();
  }
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

 private:
  static void run(boost::asio::io_service& service) {
    mark_io_thread();
    for (;;) {
      try {
        service.run();
        return;
      } catch (const std::exception& e) {
        spdlog::error("HTTP client thread: {}", e.what());
      } catch (...) {
        spdlog::error("HTTP client thread: unknown exception");
      }
    }
  }

  std::array<std::thread, kIoThreads> threads_;
};

}  // namespace

void start_transport_io() {
  static const IoThreads threads = [] {
    hide_system_cas();
    // The pool must exist before the static that ends its threads, so that it is destroyed after.
    return IoThreads();
  }();
}

}  // namespace loadline::kube
