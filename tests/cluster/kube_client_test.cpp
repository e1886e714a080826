// kube/ against a real API server: what the scripted transport of its unit tests only claims.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kube/client.h"
#include "kube/cpprest_transport.h"
#include "kube/events.h"
#include "kube/leader.h"
#include "kube/reflector.h"
#include "tests/cluster/cluster.h"

namespace loadline::testing {
namespace {

using nlohmann::json;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
namespace resources = kube::resources;

class KubeClientTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    kube::start_transport_io();
    cluster = new Cluster(Cluster::start({.fleet = ""}));
    const Result<kube::ClusterConfig> config = kube::load_config({.kubeconfig = cluster->kubeconfig().string()});
    ASSERT_TRUE(config.ok()) << config.error().message;
    const auto made = kube::make_cpprest_transport(*config);
    ASSERT_TRUE(made.ok()) << made.error().message;
    transport = *made;
  }
  static void TearDownTestSuite() {
    transport.reset();
    delete cluster;
    cluster = nullptr;
  }

  static json config_map(const std::string& name, const std::string& value) {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"namespace", "default"}, {"name", name}}},
            {"data", {{"key", value}}}};
  }
  static bool eventually(const std::function<bool()>& holds) { return cluster->wait_for(20s, holds); }

  static Cluster* cluster;
  static std::shared_ptr<kube::Transport> transport;
  kube::Client client_{transport, {.field_manager = "kube-client-test"}};
};

Cluster* KubeClientTest::cluster = nullptr;
std::shared_ptr<kube::Transport> KubeClientTest::transport;

TEST_F(KubeClientTest, ReadsTheServersVersionAndWhatItServes) {
  const auto version = client_.server_version();
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_TRUE(version->starts_with("v1.")) << *version;
  EXPECT_TRUE(*client_.serves("batch/v1", "Job"));
  EXPECT_TRUE(*client_.serves("v1", "Pod"));
  EXPECT_FALSE(*client_.serves("nobody.example/v1", "Thing"));
}

TEST_F(KubeClientTest, WritesHaveTheServersRules) {
  const kube::ObjectKey key{"default", "rules"};
  const auto made = client_.create(resources::kConfigMaps, config_map("rules", "1"));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(client_.create(resources::kConfigMaps, config_map("rules", "2")).error().already_exists());

  json stale = made->json();
  ASSERT_TRUE(client_.merge_patch(resources::kConfigMaps, key, {{"data", {{"key", "2"}}}}).ok());
  EXPECT_TRUE(client_.update(resources::kConfigMaps, stale).error().conflict());

  const json failing_test = {{{"op", "test"}, {"path", "/data/key"}, {"value", "other"}},
                             {{"op", "replace"}, {"path", "/data/key"}, {"value", "3"}}};
  const auto refused = client_.json_patch(resources::kConfigMaps, key, failing_test);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Error::Code::Invalid) << refused.error().message;

  const auto applied = client_.apply(resources::kConfigMaps, config_map("rules", "4"));
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  EXPECT_EQ(applied->json()["data"]["key"], "4");

  const auto dry = client_.merge_patch(resources::kConfigMaps, key, {{"data", {{"key", "dry"}}}}, {.dry_run = true});
  ASSERT_TRUE(dry.ok());
  EXPECT_EQ(client_.get(resources::kConfigMaps, key)->json()["data"]["key"], "4");

  EXPECT_TRUE(client_.remove(resources::kConfigMaps, key, {.uid = "not-its-uid"}).error().conflict());
  EXPECT_TRUE(client_.remove(resources::kConfigMaps, key, {.uid = made->uid()}).ok());
  EXPECT_EQ(client_.get(resources::kConfigMaps, key).error().code, Error::Code::NotFound);
  EXPECT_TRUE(client_.remove(resources::kConfigMaps, key).ok()) << "gone is done";

  json bad = config_map("rules", "1");
  bad["metadata"]["name"] = "Not A Name";
  const auto invalid = client_.create(resources::kConfigMaps, bad);
  ASSERT_FALSE(invalid.ok());
  ASSERT_FALSE(invalid.error().fields.empty());
  EXPECT_EQ(invalid.error().fields[0].field, "metadata.name");
}

TEST_F(KubeClientTest, AListIsTheSameInPages) {
  for (int i = 0; i < 7; ++i) {
    json object = config_map("page-" + std::to_string(i), "x");
    object["metadata"]["labels"] = {{"test", "pages"}};
    ASSERT_TRUE(client_.create(resources::kConfigMaps, object).ok());
  }
  const auto list =
      client_.list(resources::kConfigMaps, {.ns = "default", .label_selector = "test=pages", .page_size = 2});
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->items.size(), 7U);
  EXPECT_EQ(list->items[0].kind(), "ConfigMap");
}

TEST_F(KubeClientTest, AStoreFollowsTheServerAndOurOwnWrites) {
  kube::Store store(resources::kConfigMaps);
  kube::Reflector reflector(client_, store, {.ns = "default"});
  reflector.start();
  ASSERT_TRUE(store.wait_synced(20s));
  const kube::ObjectKey key{"default", "followed"};
  const auto made = client_.create(resources::kConfigMaps, config_map("followed", "1"));
  ASSERT_TRUE(made.ok());
  store.expect_at_least(key, made->resource_version());
  ASSERT_TRUE(eventually([&] { return store.freshness(key) == kube::Freshness::Current; }));
  EXPECT_EQ(store.get(key).uid(), made->uid());
  EXPECT_FALSE(store.get(key).json()["metadata"].contains("managedFields"));
  ASSERT_TRUE(client_.remove(resources::kConfigMaps, key).ok());
  EXPECT_TRUE(eventually([&] { return !store.get(key); }));
  const auto began = std::chrono::steady_clock::now();
  reflector.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
}

TEST_F(KubeClientTest, AListComesAsAStreamAndIsTheSameAsInPages) {
  for (int i = 0; i < 5; ++i) {
    json object = config_map("streamed-" + std::to_string(i), "x");
    object["metadata"]["labels"] = {{"test", "stream"}};
    ASSERT_TRUE(client_.create(resources::kConfigMaps, object).ok());
  }
  const auto listed = [&](bool streamed) {
    kube::Store store(resources::kConfigMaps);
    kube::Reflector reflector(client_, store,
                              {.label_selector = "test=stream", .stream_lists = streamed, .page_size = 2});
    reflector.start();
    EXPECT_TRUE(store.wait_synced(20s));
    EXPECT_EQ(reflector.metrics().streamed_lists.value(), streamed ? 1U : 0U);
    EXPECT_EQ(reflector.metrics().failures.value(), 0U);
    std::vector<std::string> out;
    for (const kube::Object& object : store.list()) {
      out.push_back(to_string(object.key()) + "@" + object.resource_version());
    }
    return out;
  };
  const auto streamed = listed(true);
  EXPECT_EQ(streamed.size(), 5U);
  EXPECT_EQ(streamed, listed(false));
}

// The real way to the server, but the first watch asks to go on from a version that is long gone.
class FromLongAgo final : public kube::Transport {
 public:
  explicit FromLongAgo(std::shared_ptr<kube::Transport> real) : real_(std::move(real)) {}
  kube::Answer<kube::Response> send(kube::Request request, std::chrono::milliseconds timeout,
                                    std::stop_token stop) override {
    return real_->send(std::move(request), timeout, std::move(stop));
  }
  std::unique_ptr<kube::WatchStream> open_watch(kube::Request request, std::chrono::milliseconds idle) override {
    if (watches_++ == 0) {
      const auto at = request.target.find("resourceVersion=") + std::string("resourceVersion=").size();
      request.target.replace(at, request.target.find('&', at) - at, "1");
    }
    return real_->open_watch(std::move(request), idle);
  }

 private:
  const std::shared_ptr<kube::Transport> real_;
  std::atomic<int> watches_{0};
};

// What the API server does every five minutes: etcd forgets all versions before `version`.
void compact(const Cluster& cluster, const std::string& version) {
  std::ifstream file(cluster.folder() / "state.json");
  const json state = json::parse(file);
  kube::ClusterConfig etcd;
  etcd.server = "http://127.0.0.1:" + std::to_string(state["ports"]["etcd"].get<int>());
  etcd.auth = kube::static_auth({});
  kube::Request request;
  request.method = kube::Method::Post;
  request.target = "/v3/kv/compaction";
  request.content_type = "application/json";
  request.body = json{{"revision", version}, {"physical", true}}.dump();
  const auto answer = (*kube::make_cpprest_transport(etcd))->send(request, 10s, {});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  ASSERT_EQ(answer->status, 200) << answer->body;
}

TEST_F(KubeClientTest, AVersionThatIsGoneIsFollowedByANewList) {
  const auto made = client_.create(resources::kConfigMaps, config_map("compacted", "1"));
  ASSERT_TRUE(made.ok());
  compact(*cluster, made->resource_version());
  kube::Client client(std::make_shared<FromLongAgo>(transport), {.field_manager = "kube-client-test"});
  // The API server answers for events from etcd; of other types it remembers more than etcd does.
  kube::Store store(resources::kEvents);
  kube::Reflector reflector(client, store, {.ns = "default", .stream_lists = false});
  reflector.start();
  ASSERT_TRUE(eventually([&] { return reflector.metrics().lists.value() == 2; }));
  EXPECT_EQ(reflector.metrics().expired.value(), 1U) << "the server says 410 in the way that is understood";
  const std::size_t before = store.size();
  kube::EventRecorder events(client_, {.instance = "test-0"});
  events.start();
  events.record(kube::reference_to(resources::kConfigMaps, *made),
                {kube::Event::Type::Normal, "Compacted", "Compact", "etcd forgot"});
  EXPECT_TRUE(eventually([&] { return store.size() > before; }));
}

TEST_F(KubeClientTest, OneOfTwoCandidatesLeadsAndHandsOver) {
  kube::Client other(transport);
  kube::LeaderOptions options;
  options.lease = {"default", "leader-test"};
  options.identity = "one";
  kube::LeaderElector one(client_, options);
  options.identity = "two";
  kube::LeaderElector two(other, options);
  ASSERT_TRUE(one.start().ok());
  ASSERT_TRUE(eventually([&] { return one.is_leader(); }));
  ASSERT_TRUE(two.start().ok());
  ASSERT_TRUE(eventually([&] { return two.holder() == "one"; }));
  EXPECT_FALSE(two.is_leader());
  one.stop();
  EXPECT_TRUE(eventually([&] { return two.is_leader(); }));
}

TEST_F(KubeClientTest, EventsAreAcceptedAndDescribeFindsThem) {
  const auto made = client_.create(resources::kConfigMaps, config_map("talked-about", "1"));
  ASSERT_TRUE(made.ok());
  kube::EventRecorder events(client_, {.instance = "test-0"});
  events.start();
  const kube::Event event{kube::Event::Type::Warning, "GangRestarted", "CreateAttempt", "node gpu-0 was reclaimed"};
  for (int i = 0; i < 2; ++i) events.record(kube::reference_to(resources::kConfigMaps, *made), event);
  events.stop(10s);
  EXPECT_EQ(events.metrics().written.value(), 2U) << "one event and its series";
  EXPECT_EQ(events.metrics().dropped.value(), 0U);
  const CommandResult listed =
      cluster->kubectl({"get", "events", "-n", "default", "--field-selector", "reason=GangRestarted"});
  EXPECT_NE(listed.output.find("node gpu-0 was reclaimed"), std::string::npos) << listed.output;
}

}  // namespace
}  // namespace loadline::testing
