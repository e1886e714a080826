// Reviews over HTTP, through a real server on loopback.
#include "webhook/routes.h"

#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "serve/server.h"
#include "tests/unit/serve/raw_client.h"
#include "tests/unit/webhook/fixture.h"

namespace loadline::webhook::testing {
namespace {

using nlohmann::json;
using serve::testing::post;
using serve::testing::RawClient;

class RoutesTest : public ::testing::Test {
 protected:
  RoutesTest() {
    const auto snapshot = std::make_shared<const Snapshot>(small_cluster());
    server = std::make_unique<serve::Server>(serve::ServerOptions{.name = "webhook", .listen = "127.0.0.1:0"},
                                             review_routes([snapshot] { return snapshot; }, registry));
    EXPECT_TRUE(server->start().ok());
  }
  std::string ask(const std::string& request) {
    RawClient client(server->port());
    client.send(request);
    return client.response();
  }

  prometheus::Registry registry;
  std::unique_ptr<serve::Server> server;
};

TEST_F(RoutesTest, AnswersAReviewAndCountsIt) {
  const std::string answer = ask(post("/validate?timeout=5s", review_named("validate-job-that-fits").dump()));
  ASSERT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  const json body = json::parse(answer.substr(answer.find("\r\n\r\n")));
  EXPECT_EQ(body["response"]["uid"], "uid-validate-job-that-fits");
  EXPECT_TRUE(body["response"]["allowed"].get<bool>());
  const std::string metrics = prometheus::TextSerializer().Serialize(registry.Collect());
  EXPECT_NE(
      metrics.find(R"(loadline_webhook_reviews_total{kind="TrainingJob",verdict="allowed",webhook="validate"} 1)"),
      std::string::npos)
      << metrics;
}

TEST_F(RoutesTest, RefusesWhatIsNoReview) {
  for (const std::string& body :
       {std::string("{"), std::string(), std::string("{}"), std::string("\xff\xfe"), std::string(100'000, '['),
        R"({"a":)" + std::string(100'000, '['), review_named("validate-job-that-fits").dump().substr(0, 500)}) {
    EXPECT_TRUE(ask(post("/validate", body)).starts_with("HTTP/1.1 400")) << body.substr(0, 40);
    EXPECT_TRUE(ask(post("/mutate", body)).starts_with("HTTP/1.1 400")) << body.substr(0, 40);
  }
  EXPECT_TRUE(ask("POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}").starts_with("HTTP/1.1 415"));
}

TEST_F(RoutesTest, RefusesMoreValuesThanAnyReviewHolds) {
  for (const std::string& value :
       {std::string("{}"), std::string("0"), std::string("[]"), std::string(R"({"a":""})")}) {
    std::string body = "[" + value;
    while (body.size() < 1'000'000) body += "," + value;
    const std::string answer = ask(post("/validate", body + "]"));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400")) << answer;
    EXPECT_TRUE(answer.ends_with("JSON of more than 100000 values\n")) << answer;
  }
}

TEST_F(RoutesTest, AnUpdateOfAVeryLargePodTemplateIsJudged) {
  json review = review_named("validate-job-that-fits");
  json& object = review["request"]["object"];
  json& container = object["spec"]["template"]["spec"]["containers"][0];
  json fields;
  for (int i = 0; i < 5000; ++i) {
    const std::string name = "VARIABLE_" + std::to_string(i);
    container["env"].push_back({{"name", name}, {"value", "x"}});
    fields["k:{\"name\":\"" + name + "\"}"] = {
        {".", json::object()}, {"f:name", json::object()}, {"f:value", json::object()}};
  }
  object["metadata"]["managedFields"] = {{{"manager", "kubectl"}, {"fieldsV1", {{"f:spec", fields}}}}};
  review["request"]["operation"] = "UPDATE";
  review["request"]["oldObject"] = object;
  EXPECT_TRUE(ask(post("/validate", review.dump())).starts_with("HTTP/1.1 200"));
}

TEST_F(RoutesTest, ADeepTemplateIsAFieldErrorAndTheServerLives) {
  json review = review_named("validate-job-that-fits");
  std::string deep = R"("x")";
  for (int i = 0; i < 250; ++i) deep = "[" + deep + "]";
  review["request"]["object"]["spec"]["template"]["spec"]["x"] = json::parse(deep);
  EXPECT_NE(ask(post("/validate", review.dump())).find("\"field\":\"spec.template\""), std::string::npos);
  EXPECT_TRUE(ask(post("/validate", review_named("validate-job-that-fits").dump())).starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace loadline::webhook::testing
