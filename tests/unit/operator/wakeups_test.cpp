// Which changes reach the queue, over real caches and a scripted server.
#include "operator/wakeups.h"

#include <gtest/gtest.h>

#include <mutex>
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

json job_json(const std::string& uid) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", "llama"}, {"namespace", "team"}, {"uid", uid}, {"resourceVersion", "1"}}}};
}

/// Lists one job and its namespace, in pages only; the watch on namespaces says what the test sends, all others stay
/// silent.
class Server final : public kube::Transport {
 public:
  kube::Answer<kube::Response> send(kube::Request request, std::chrono::milliseconds, std::stop_token) override {
    json items = json::array();
    if (request.target.find("/trainingjobs") != std::string::npos) {
      items.push_back(job_json("j"));
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
    lines->set_status(200, std::nullopt);
    if (request.target.find("/namespaces") != std::string::npos) {
      const std::lock_guard lock(mutex_);
      namespaces_ = lines;
    }
    return std::make_unique<Stream>(lines);
  }

  /// The watch on namespaces that was opened last; null before the first.
  std::shared_ptr<kube::LineQueue> namespaces() const {
    const std::lock_guard lock(mutex_);
    return namespaces_;
  }

 private:
  class Stream final : public kube::WatchStream {
   public:
    explicit Stream(std::shared_ptr<kube::LineQueue> lines) : lines_(std::move(lines)) {}
    kube::WatchRead read(std::chrono::milliseconds wait) override { return lines_->read(wait); }
    void cancel() noexcept override { lines_->close(); }

   private:
    const std::shared_ptr<kube::LineQueue> lines_;
  };

  mutable std::mutex mutex_;
  std::shared_ptr<kube::LineQueue> namespaces_;
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

  ASSERT_TRUE(soon([&] { return server->namespaces() != nullptr; }));
  server->namespaces()->write(json{{"type", "MODIFIED"}, {"object", namespace_json("2", json::object())}}.dump() + "\n",
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
  ASSERT_TRUE(soon([&] { return caches.in_touch() && server->namespaces() != nullptr; }));
  const auto broken = server->namespaces();
  broken->finish(kube::ApiError::transport(kube::ApiError::kConnection, "reset"));
  EXPECT_TRUE(soon([&] { return !caches.in_touch(); }));
  ASSERT_TRUE(soon([&] { return server->namespaces() != broken; }));
  server->namespaces()->write(json{{"type", "MODIFIED"}, {"object", namespace_json("2", json::object())}}.dump() + "\n",
                              [] {});
  EXPECT_TRUE(soon([&] { return caches.in_touch(); }));
  caches.stop();
}

TEST(Caches, ShowAJobWithoutItsLastFinalizerBeforeTheServerTellsOfItsEnd) {
  const auto server = std::make_shared<Server>();
  kube::Client client(server, {.requests_per_second = 0});
  Caches caches(client);
  caches.start();
  ASSERT_TRUE(soon([&] { return caches.synced(); }));
  const auto answer = [](const char* uid, const json& metadata) {
    json job = job_json(uid);
    job["metadata"].update(metadata);
    return kube::Object(job);
  };
  const kube::ObjectKey key{"team", "llama"};
  caches.wrote(resources::kTrainingJobs, answer("j", {{"labels", {{"as", "written"}}}}));
  EXPECT_FALSE(caches.get(resources::kTrainingJobs, key).label("as")) << "one version is one state";
  caches.wrote(resources::kTrainingJobs, answer("another", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}}));
  EXPECT_FALSE(caches.get(resources::kTrainingJobs, key).deleting()) << "another job's";
  caches.wrote(resources::kTrainingJobs, answer("j", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}}));
  EXPECT_TRUE(caches.get(resources::kTrainingJobs, key).deleting());
  caches.stop();
}

}  // namespace
}  // namespace loadline::controller
