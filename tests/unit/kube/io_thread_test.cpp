// Nothing that waits may run on a thread that all requests wait for.
#include "kube/io_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "kube/clock.h"
#include "kube/cpprest_transport.h"
#include "kube/line_queue.h"
#include "kube/store.h"
#include "kube/workqueue.h"
#include "tests/unit/kube/http_server.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;

TEST(IoThread, IsOnlyTheThreadThatWasMarked) {
  std::thread([] {
    mark_io_thread();
    EXPECT_TRUE(on_io_thread());
  }).join();
  EXPECT_FALSE(on_io_thread());
}

// Tells on which thread the library was when it met a 401.
class Witness final : public AuthSource {
 public:
  Result<Credentials> credentials(const Patience&) override { return Credentials{"Bearer t", {}}; }
  void refused(const Credentials&) override { on_io_ = on_io_thread(); }
  [[nodiscard]] bool on_io() const { return on_io_; }

 private:
  std::atomic<bool> on_io_{false};
};

TEST(IoThread, IsWhereTheHttpLibraryRuns) {
  HttpServer server([](Connection& connection) {
    connection.read_request();
    connection.write(http_answer(401, "{}"));
  });
  const auto witness = std::make_shared<Witness>();
  ClusterConfig config;
  config.server = server.url();
  config.auth = witness;
  const auto transport = *make_cpprest_transport(config);
  Request request;
  request.target = "/x?watch=true";
  EXPECT_EQ(transport->open_watch(request, 30s)->read(30s).kind, WatchRead::Kind::Failed);
  EXPECT_TRUE(witness->on_io());
}

#if !defined(NDEBUG) && !defined(__SANITIZE_THREAD__)  // ThreadSanitizer and forks of many threads do not get along
void waits_on_an_io_thread(const std::function<void()>& wait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(std::thread([&] {
                 mark_io_thread();
                 wait();
               }).join(),
               "would wait on an I/O thread");
}

TEST(IoThreadDeathTest, ARequestThereEndsADebugBuild) {
  ClusterConfig config;
  config.server = "http://127.0.0.1:1";
  config.auth = static_auth({});
  const auto transport = *make_cpprest_transport(config);
  waits_on_an_io_thread([&] { (void)transport->send({}, 1s, {}); });
  waits_on_an_io_thread([&] { (void)transport->open_watch({}, 1s); });
}

TEST(IoThreadDeathTest, SoDoesEveryOtherWait) {
  waits_on_an_io_thread([] { (void)LineQueue().read(1s); });
  waits_on_an_io_thread([] { (void)system_clock()->sleep_for(1s, {}); });
  waits_on_an_io_thread([] { (void)Store(resources::kPods).wait_synced(1s); });
  waits_on_an_io_thread([] { (void)WorkQueue().get(); });
  waits_on_an_io_thread([] { (void)exec_auth(ExecPlugin(), system_clock())->credentials(); });
}
#endif

}  // namespace
}  // namespace loadline::kube
