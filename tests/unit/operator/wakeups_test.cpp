// Which changes reach the queue, over real caches and a scripted server.
#include "operator/wakeups.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "api/names.h"
#include "kube/line_queue.h"
#include "operator/resources.h"

namespace loadline::controller {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

json namespace_json(const std::string& version, const json& labels) {
  return {{"apiVersion", "v1"},
          {"kind", "Namespace"},
          {"metadata", {{"name", "team"}, {"uid", "n"}, {"resourceVersion", version}, {"labels", labels}}}};
}

/// Lists one job and its namespace, in pages only; the watch on namespaces says what the test sends, all others stay
/// silent.
class Server final : public kube::Transport {
 public:
  kube::Answer<kube::Response> send(kube::Request request, std::chrono::milliseconds, std::stop_token) override {
    json items = json::array();
    if (request.target.find("/trainingjobs") != std::string::npos) {
      items.push_back(
          {{"apiVersion", api::kApiVersion},
           {"kind", "TrainingJob"},
           {"metadata", {{"name", "llama"}, {"namespace", "team"}, {"uid", "j"}, {"resourceVersion", "1"}}}});
    } else if (request.target.find("/namespaces") != std::string::npos) {
      items.push_back(namespace_json("1", {{api::label::kIgnore, ""}}));
    }
    return kube::Response{200, json{{"metadata", {{"resourceVersion", "1"}}}, {"items", items}}.dump(), {}};
  }
  std::unique_ptr<kube::WatchStream> open_watch(kube::Request request, std::chrono::milliseconds) override {
    auto lines = std::make_shared<kube::LineQueue>();
    if (request.target.find("sendInitialEvents=true") != std::string::npos) {
      lines->finish(kube::ApiError::from_response(422, "sendInitialEvents is forbidden"));
      return std::make_unique<Stream>(lines);
    }
    if (request.target.find("/namespaces") != std::string::npos) lines = namespaces;
    lines->set_status(200, std::nullopt);
    return std::make_unique<Stream>(lines);
  }

  std::shared_ptr<kube::LineQueue> namespaces = std::make_shared<kube::LineQueue>();

 private:
  class Stream final : public kube::WatchStream {
   public:
    explicit Stream(std::shared_ptr<kube::LineQueue> lines) : lines_(std::move(lines)) {}
    kube::WatchRead read(std::chrono::milliseconds wait) override { return lines_->read(wait); }
    void cancel() noexcept override { lines_->close(); }

   private:
    const std::shared_ptr<kube::LineQueue> lines_;
  };
};

bool soon(const std::function<bool()>& holds) {
  for (int i = 0; i < 1000 && !holds(); ++i) std::this_thread::sleep_for(10ms);
  return holds();
}

TEST(Wakeups, LookAtTheJobsOfANamespaceAgainOnceItsIgnoreLabelIsGone) {
  const auto server = std::make_shared<Server>();
  kube::Client client(server, {.requests_per_second = 0});
  Caches caches(client);
  kube::WorkQueue jobs, pools;
  const Wakeups wakeups(caches, jobs, pools);
  EXPECT_FALSE(caches.synced());
  EXPECT_NE(caches.missing().find("namespaces"), std::string::npos);
  caches.start();
  ASSERT_TRUE(soon([&] { return caches.synced() && jobs.size() == 1; }));
  const auto first = jobs.get();
  ASSERT_TRUE(first);
  jobs.done(*first);
  ASSERT_EQ(jobs.size(), 0U);

  server->namespaces->write(json{{"type", "MODIFIED"}, {"object", namespace_json("2", json::object())}}.dump() + "\n",
                            [] {});
  ASSERT_TRUE(soon([&] { return jobs.size() == 1; }));
  EXPECT_EQ(jobs.get()->name, "llama");
  caches.stop();
}

TEST(Caches, AreOutOfTouchFromABrokenWatchUntilItIsMended) {
  const auto server = std::make_shared<Server>();
  kube::Client client(server, {.requests_per_second = 0});
  Caches caches(client);
  EXPECT_FALSE(caches.in_touch());
  caches.start();
  ASSERT_TRUE(soon([&] { return caches.in_touch(); }));
  const auto broken = std::exchange(server->namespaces, std::make_shared<kube::LineQueue>());
  broken->finish(kube::ApiError::transport(kube::ApiError::kConnection, "reset"));
  EXPECT_TRUE(soon([&] { return !caches.in_touch(); }));
  EXPECT_TRUE(soon([&] { return caches.in_touch(); }));
  caches.stop();
}

}  // namespace
}  // namespace loadline::controller
