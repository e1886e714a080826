#include "kube/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/unit/kube/fake_transport.h"
#include "tests/unit/kube/objects.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ClientTest : public testing::Test {
 protected:
  ClientTest()
      : client_(transport_, {.field_manager = "mgr",
                             .requests_per_second = 0,
                             .reads = quick(kReadRetries),
                             .writes = quick(kWriteRetries)}) {}

  // The same policy with waits that do not slow the tests.
  static RetryPolicy quick(RetryPolicy policy) {
    policy.first_wait = 1ms;
    policy.longest_wait = 2ms;
    return policy;
  }
  void answers(const std::string& method, int status, const std::string& body,
               std::map<std::string, std::string> headers = {}) {
    transport_->on(method, "/", FakeTransport::reply(status, body, std::move(headers)));
  }
  Request last() { return transport_->requests().back(); }

  std::shared_ptr<FakeTransport> transport_ = std::make_shared<FakeTransport>();
  Client client_;
};

TEST_F(ClientTest, WritesGoToTheirPathWithTheirTypeAndManager) {
  for (const char* method : {"POST", "PUT", "PATCH"}) answers(method, 200, pod_json("a", "p", "2").dump());
  const json object = pod_json("a", "p", "1");
  ASSERT_TRUE(client_.create(resources::kPods, object).ok());
  EXPECT_EQ(last().target, "/api/v1/namespaces/a/pods?fieldManager=mgr");
  ASSERT_TRUE(client_.update(resources::kPods, object, {.subresource = "status"}).ok());
  EXPECT_EQ(last().target, "/api/v1/namespaces/a/pods/p/status?fieldManager=mgr");
  ASSERT_TRUE(client_.apply(resources::kPods, object).ok());
  EXPECT_EQ(last().target, "/api/v1/namespaces/a/pods/p?fieldManager=mgr&force=true");
  EXPECT_EQ(last().content_type, "application/apply-patch+yaml");
  ASSERT_TRUE(client_.apply(resources::kPods, object, {.dry_run = true, .force = false}).ok());
  EXPECT_EQ(last().target, "/api/v1/namespaces/a/pods/p?fieldManager=mgr&dryRun=All");
  ASSERT_TRUE(client_.merge_patch(resources::kPods, {"a", "p"}, {{"x", 1}}, {.subresource = "status"}).ok());
  EXPECT_EQ(last().content_type, "application/merge-patch+json");
  EXPECT_EQ(last().body, R"({"x":1})");
  ASSERT_TRUE(client_.json_patch(resources::kPods, {"a", "p"}, json::array()).ok());
  EXPECT_EQ(last().content_type, "application/json-patch+json");
}

TEST_F(ClientTest, ATakenNameIsAConflictWithItsReason) {
  answers("POST", 409, status_body(409, "AlreadyExists"));
  const Answer<Object> answer = client_.create(resources::kPods, pod_json("a", "p", ""));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Error::Code::Conflict);
  EXPECT_TRUE(answer.error().already_exists());
  EXPECT_EQ(transport_->count("POST"), 1U);
}

TEST_F(ClientTest, AnObjectWithoutANameIsNeverSent) {
  const json unnamed = {{"metadata", {{"generateName", "p-"}}}};
  EXPECT_EQ(client_.create(resources::kPods, unnamed).error().code, Error::Code::Invalid);
  EXPECT_EQ(client_.apply(resources::kPods, unnamed).error().code, Error::Code::Invalid);
  EXPECT_EQ(client_.update(resources::kPods, json(7)).error().code, Error::Code::Invalid);
  EXPECT_TRUE(transport_->requests().empty());
}

TEST_F(ClientTest, DeletesCarryPreconditionsAndTreatGoneAsDone) {
  answers("DELETE", 404, status_body(404, "NotFound"));
  const Answer<Object> gone =
      client_.remove(resources::kPods, {"a", "p"},
                     {.uid = "u", .resource_version = "7", .propagation = Propagation::Foreground, .grace_seconds = 0});
  ASSERT_TRUE(gone.ok());
  EXPECT_FALSE(*gone);
  const json body = json::parse(last().body);
  EXPECT_EQ(body["preconditions"], (json{{"uid", "u"}, {"resourceVersion", "7"}}));
  EXPECT_EQ(body["propagationPolicy"], "Foreground");
  EXPECT_EQ(body["gracePeriodSeconds"], 0);
}

TEST_F(ClientTest, ADeletionThatTakesTimeGivesTheObject) {
  json dying = pod_json("a", "p", "9");
  dying["metadata"]["deletionTimestamp"] = "2026-11-30T10:00:00Z";
  answers("DELETE", 200, dying.dump());
  answers("DELETE", 200, R"({"kind":"Status","status":"Success"})");
  answers("DELETE", 409, status_body(409, "Conflict"));
  EXPECT_TRUE(client_.remove(resources::kPods, {"a", "p"})->deleting());
  EXPECT_FALSE(*client_.remove(resources::kPods, {"a", "p"}));
  EXPECT_TRUE(client_.remove(resources::kPods, {"a", "p"}).error().conflict());
}

TEST_F(ClientTest, ReadsAreRepeatedUntilTheySucceed) {
  transport_->on("GET", "/", ApiError::transport(ApiError::kConnection, "reset"));
  answers("GET", 503, "");
  answers("GET", 200, pod_json("a", "p", "1").dump());
  EXPECT_TRUE(client_.get(resources::kPods, {"a", "p"}).ok());
  EXPECT_EQ(client_.metrics().retries.value(), 2U);
}

TEST_F(ClientTest, ALostWriteIsNotRepeatedButReportedAsUnknown) {
  transport_->on("POST", "/", ApiError::transport(ApiError::kConnection, "reset"));
  const Answer<Object> lost = client_.create(resources::kPods, pod_json("a", "p", ""));
  ASSERT_FALSE(lost.ok());
  EXPECT_TRUE(lost.error().outcome_unknown);
  EXPECT_EQ(transport_->count("POST"), 1U);
  answers("PATCH", 500, "");
  EXPECT_TRUE(client_.merge_patch(resources::kPods, {"a", "p"}, json::object()).error().outcome_unknown);
  EXPECT_EQ(transport_->count("PATCH"), 1U);
}

TEST_F(ClientTest, ARefusalAfterAnUnknownOutcomeLeavesItUnknown) {
  answers("POST", 503, "", {{"retry-after", "0"}});
  answers("POST", 403, status_body(403, "Forbidden"));
  const Answer<Object> answer = client_.create(resources::kPods, pod_json("a", "p", ""));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().http_status, 403);
  EXPECT_TRUE(answer.error().outcome_unknown) << "the first try may have been carried out";
}

TEST_F(ClientTest, ATransportThatThrowsLeavesItsPlaceInFlight) {
  transport_->handle([](const Request&) -> Answer<Response> { throw std::bad_alloc(); });
  Client client(transport_, {.requests_per_second = 0, .max_in_flight = 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW((void)client.get(resources::kPods, {"a", "p"}), std::bad_alloc);
  }
  EXPECT_EQ(client.metrics().in_flight.value(), 0);
}

TEST_F(ClientTest, ARefusedWriteIsRepeatedAfterTheTimeTheServerNames) {
  answers("POST", 429, "", {{"retry-after", "1"}});
  answers("POST", 201, pod_json("a", "p", "1").dump());
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(client_.create(resources::kPods, pod_json("a", "p", "")).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - began, 1s);
  EXPECT_EQ(client_.metrics().too_many.value(), 1U);
}

TEST_F(ClientTest, DoesNotWaitLongerThanTheCallMayTake) {
  answers("POST", 429, "", {{"retry-after", "3000"}});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(client_.create(resources::kPods, pod_json("a", "p", "")).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
}

TEST_F(ClientTest, WhatIsAskedOnceIsNotAskedAgain) {
  answers("GET", 500, "");
  answers("GET", 200, "a line\n");
  EXPECT_FALSE(client_.pod_log({"a", "p"}, {}, {.once = true}).ok());
  EXPECT_TRUE(client_.pod_log({"a", "p"}).ok());
}

TEST_F(ClientTest, ListsPageByPageAndGivesItemsTheirType) {
  json untyped = pod_json("a", "p1", "1");
  untyped.erase("kind");
  answers("GET", 200, list_body("5", {untyped}, "next"));
  answers("GET", 200, list_body("5", {pod_json("a", "p2", "2")}));
  const Answer<List> list =
      client_.list(resources::kPods, {.ns = "a", .label_selector = "app in (x,y)", .page_size = 1});
  ASSERT_TRUE(list.ok()) << list.error().message;
  ASSERT_EQ(list->items.size(), 2U);
  EXPECT_EQ(list->items[0].kind(), "Pod");
  EXPECT_EQ(list->resource_version, "5");
  EXPECT_THAT(transport_->requests()[0].target, HasSubstr("labelSelector=app%20in%20%28x%2Cy%29"));
  EXPECT_THAT(last().target, HasSubstr("continue=next"));
}

TEST_F(ClientTest, AnExpiredPageStartsTheListAgainOnce) {
  answers("GET", 200, list_body("5", {pod_json("a", "old", "1")}, "next"));
  answers("GET", 410, status_body(410, "Expired"));
  answers("GET", 200, list_body("9", {pod_json("a", "new", "8")}));
  const Answer<List> list = client_.list(resources::kPods);
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->items.size(), 1U);
  EXPECT_EQ(list->items[0].name(), "new");
}

TEST_F(ClientTest, AnswersThatAreNoObjectAreErrorsNotCrashes) {
  for (const char* body : {"", "null", "[1]", "{\"items\":3}", "<html>"}) {
    const auto transport = std::make_shared<FakeTransport>();
    transport->on("GET", "/", FakeTransport::reply(200, body));
    Client client(transport);
    EXPECT_FALSE(client.list(resources::kPods).ok()) << body;
  }
  for (const char* body : {"", "null", "[1]", "<html>"}) {
    const auto transport = std::make_shared<FakeTransport>();
    transport->on("GET", "/", FakeTransport::reply(200, body));
    Client client(transport);
    EXPECT_FALSE(client.get(resources::kPods, {"a", "p"}).ok()) << body;
  }
}

TEST_F(ClientTest, ALogIsCutInFrontOnALine) {
  answers("GET", 200, "first line\nsecond line\nthird line\n");
  EXPECT_EQ(*client_.pod_log({"a", "p"}, {.container = "trainer", .tail_lines = 3, .limit_bytes = 20}), "third line\n");
  EXPECT_THAT(last().target, HasSubstr("/api/v1/namespaces/a/pods/p/log?container=trainer&tailLines=3"));
  EXPECT_EQ(*client_.pod_log({"a", "p"}), "first line\nsecond line\nthird line\n");
}

TEST_F(ClientTest, DiscoveryTellsWhatTheServerHas) {
  transport_->on("GET", "/apis/batch/v1",
                 FakeTransport::reply(200, R"({"resources":[{"kind":"Job"},{"kind":"CronJob"}]})"));
  transport_->on(
      "GET", "/apis/scheduling.k8s.io",
      FakeTransport::reply(
          200, R"({"versions":[{"version":"v1alpha2"},{"version":"v1"}],"preferredVersion":{"version":"v1"}})"));
  EXPECT_TRUE(*client_.serves("batch/v1", "Job"));
  EXPECT_FALSE(*client_.serves("batch/v1", "Gang"));
  EXPECT_FALSE(*client_.serves("nobody/v1", "Job"));
  EXPECT_THAT(*client_.group_versions("scheduling.k8s.io"), testing::ElementsAre("v1", "v1alpha2"));
  EXPECT_TRUE(client_.group_versions("nobody")->empty());
}

TEST_F(ClientTest, NeverHasMoreInFlightThanAllowed) {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  transport_->handle([&](const Request&) {
    const int n = ++now;
    int seen = most;
    while (n > seen && !most.compare_exchange_weak(seen, n)) {
    }
    std::this_thread::sleep_for(2ms);
    --now;
    return FakeTransport::reply(200, "{}");
  });
  Client client(transport_, {.requests_per_second = 0, .max_in_flight = 3});
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 12; ++i) {
      callers.emplace_back([&] {
        for (int k = 0; k < 5; ++k) EXPECT_TRUE(client.get(resources::kPods, {"a", "p"}).ok());
      });
    }
  }
  EXPECT_EQ(most, 3);
  EXPECT_EQ(client.metrics().in_flight.value(), 0);
}

TEST_F(ClientTest, ShutDownEndsWaitsAndRefusesNewRequests) {
  answers("GET", 503, "", {{"retry-after", "20"}});
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    client_.shut_down();
  });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(client_.get(resources::kPods, {"a", "p"}).error().canceled());
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_TRUE(client_.get(resources::kPods, {"a", "p"}).error().canceled());
}

TEST_F(ClientTest, RetryOnConflictReadsAnewAndGivesUpAfterFive) {
  int tries = 0;
  const Answer<Object> won = retry_on_conflict([&]() -> Answer<Object> {
    if (++tries < 3) return ApiError::from_response(409, status_body(409, "Conflict"));
    return pod("a", "p", "1");
  });
  EXPECT_TRUE(won.ok());
  EXPECT_EQ(tries, 3);
  tries = 0;
  EXPECT_FALSE(retry_on_conflict([&]() -> Answer<Object> {
                 ++tries;
                 return ApiError::from_response(409, status_body(409, "Conflict"));
               }).ok());
  EXPECT_EQ(tries, 5);
}

}  // namespace
}  // namespace loadline::kube
