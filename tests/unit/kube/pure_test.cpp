// The parts without state: paths, errors, reading JSON, retries, versions.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/error.h"
#include "kube/json_read.h"
#include "kube/object.h"
#include "kube/resource.h"
#include "kube/retry.h"

namespace loadline::kube {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

TEST(ResourcePaths, FollowGroupScopeAndSubresource) {
  const Resource jobs{"loadline.dev", "v1alpha1", "trainingjobs", "TrainingJob", true};
  EXPECT_EQ(collection_path(resources::kPods), "/api/v1/pods");
  EXPECT_EQ(collection_path(resources::kPods, "team-a"), "/api/v1/namespaces/team-a/pods");
  EXPECT_EQ(collection_path(jobs, "team-a"), "/apis/loadline.dev/v1alpha1/namespaces/team-a/trainingjobs");
  EXPECT_EQ(object_path(jobs, "team-a", "big", "status"),
            "/apis/loadline.dev/v1alpha1/namespaces/team-a/trainingjobs/big/status");
  EXPECT_EQ(object_path(resources::kNodes, "ignored", "gpu-0"), "/api/v1/nodes/gpu-0");
  EXPECT_EQ(object_path(resources::kPods, "a", "../secrets/x?y"), "/api/v1/namespaces/a/pods/..%2Fsecrets%2Fx%3Fy");
  EXPECT_EQ(resources::kJobs.api_version(), "batch/v1");
  EXPECT_EQ(resources::kPods.api_version(), "v1");
}

struct ErrorCase {
  int status;
  std::string body;
  Error::Code code;
  bool transient;
};

class ErrorMapping : public testing::TestWithParam<ErrorCase> {};

TEST_P(ErrorMapping, GivesTheCodeCallersActOn) {
  const ApiError error = ApiError::from_response(GetParam().status, GetParam().body);
  EXPECT_EQ(error.code, GetParam().code);
  EXPECT_EQ(error.transient, GetParam().transient);
  EXPECT_EQ(error.http_status, GetParam().status);
  EXPECT_FALSE(error.message.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Statuses, ErrorMapping,
    testing::Values(ErrorCase{400, "", Error::Code::Invalid, false},
                    ErrorCase{401, "Unauthorized", Error::Code::Forbidden, false},
                    ErrorCase{403, "{}", Error::Code::Forbidden, false},
                    ErrorCase{404, "404 page not found", Error::Code::NotFound, false},
                    ErrorCase{409, "", Error::Code::Conflict, false},
                    ErrorCase{410, "", Error::Code::Unavailable, false},
                    ErrorCase{422, "", Error::Code::Invalid, false}, ErrorCase{429, "", Error::Code::Unavailable, true},
                    ErrorCase{500, "<html>", Error::Code::Unavailable, true},
                    ErrorCase{503, R"({"kind":"Status","message":12})", Error::Code::Unavailable, true}));

TEST(ApiErrors, ReadAStatusWithItsCausesAndWait) {
  const ApiError error = ApiError::from_response(422, R"({"kind":"Status","reason":"Invalid","message":"two things",
    "details":{"retryAfterSeconds":3,"causes":[
      {"reason":"FieldValueRequired","field":"spec.model","message":"is required"},
      {"reason":"SomethingNew","field":"spec.gpus","message":"too few"}, {"message":"no field"}, 5]}})");
  EXPECT_EQ(error.reason, "Invalid");
  EXPECT_EQ(error.message, "two things");
  EXPECT_EQ(error.retry_after, 3s);
  ASSERT_EQ(error.fields.size(), 2U);
  EXPECT_EQ(to_string(error.fields[0]), "spec.model: Required value: is required");
  EXPECT_EQ(error.fields[1].type, FieldError::Type::Invalid);
}

TEST(ApiErrors, TellAServerErrorOfAnUnknownOutcomeAlsoWithRetryAfter) {
  EXPECT_TRUE(ApiError::from_response(500, "", 1s).outcome_unknown) << "etcd may have answered too late";
  EXPECT_FALSE(ApiError::from_response(429, "", 1s).outcome_unknown);
  EXPECT_FALSE(ApiError::from_response(409, "").outcome_unknown);
}

TEST(ApiErrors, TellATakenNameFromALostRace) {
  const ApiError taken = ApiError::from_response(409, R"({"kind":"Status","reason":"AlreadyExists"})");
  const ApiError raced = ApiError::from_response(409, R"({"kind":"Status","reason":"Conflict"})");
  EXPECT_TRUE(taken.already_exists());
  EXPECT_FALSE(taken.conflict());
  EXPECT_TRUE(raced.conflict());
  EXPECT_EQ(taken.code, Error::Code::Conflict);
}

TEST(ApiErrors, FitAnyResultOfTheLayersAbove) {
  const auto above = []() -> Result<int> {
    const Answer<Object> answer = ApiError::from_response(404, "");
    return answer.error();
  };
  EXPECT_EQ(above().error().code, Error::Code::NotFound);
}

TEST(JsonReading, NeverThrowsOnForeignDocuments) {
  const json document = json::parse(
      R"({"a":{"b":[1,"x"],"n":null,"f":8.0,"big":1e30,"u":18446744073709551615},"s":"text","t":"2026-11-30T10:09:43Z"})");
  EXPECT_EQ(string_at(document, {"s"}), "text");
  EXPECT_FALSE(string_at(document, {"a"}));
  EXPECT_FALSE(string_at(document, {"s", "deeper"}));
  EXPECT_EQ(int_at(document, {"a", "f"}), 8);
  EXPECT_FALSE(int_at(document, {"a", "big"}));
  EXPECT_FALSE(int_at(document, {"a", "u"}));
  EXPECT_FALSE(bool_at(document, {"a", "n"}));
  EXPECT_EQ(array_at(document, {"a", "b"}).size(), 2U);
  EXPECT_EQ(array_at(document, {"s"}).size(), 0U);
  EXPECT_EQ(object_at(document, {"nothing", "here"}).size(), 0U);
  EXPECT_TRUE(time_at(document, {"t"}));
  EXPECT_TRUE(strings_at(document, {"a"}).empty());
}

std::string nested(int levels) {
  std::string text = "{\"keep\":1,\"deep\":";
  for (int i = 0; i < levels; ++i) text += '[';
  for (int i = 0; i < levels; ++i) text += ']';
  return text + "}";
}

TEST(JsonReading, RefusesOrPrunesWhatNestsTooDeep) {
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth - 2)).ok());
  EXPECT_FALSE(parse_json(nested(100000)).ok());
  const Result<json> pruned = parse_json(nested(100000), TooDeep::Prune);
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(int_at(*pruned, {"keep"}), 1);
  EXPECT_LT(json_text(*pruned).size(), 2000U);
  EXPECT_FALSE(parse_json("{\"a\":").ok());
}

TEST(Objects, ReadTheirMetadataOnce) {
  const Result<Object> pod =
      Object::parse(R"({"kind":"Pod","metadata":{"namespace":"a","name":"p-0","uid":"u1","resourceVersion":"42",
    "generation":3,"labels":{"x":"y","n":1},"finalizers":["f"],"deletionTimestamp":"2026-11-30T10:09:43Z",
    "ownerReferences":[{"uid":"o1","kind":"Job","name":"j"},{"uid":"o2","controller":true}]}})");
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(to_string(pod->key()), "a/p-0");
  EXPECT_EQ(pod->uid(), "u1");
  EXPECT_EQ(pod->generation(), 3);
  EXPECT_EQ(pod->label("x"), "y");
  EXPECT_FALSE(pod->label("n"));
  EXPECT_TRUE(pod->has_finalizer("f"));
  EXPECT_TRUE(pod->deleting());
  EXPECT_EQ(pod->owners().size(), 2U);
  EXPECT_EQ(pod->controller()->uid, "o2");
}

TEST(Objects, OddMetadataReadsAsEmpty) {
  for (const char* text : {R"({})", R"({"metadata":7})",
                           R"({"metadata":{"name":7,"labels":[],"ownerReferences":{"a":1},"generation":"x"}})"}) {
    const Result<Object> object = Object::parse(text);
    ASSERT_TRUE(object.ok());
    EXPECT_EQ(object->name(), "");
    EXPECT_EQ(object->generation(), 0);
    EXPECT_TRUE(object->owners().empty());
    EXPECT_FALSE(object->deleting());
  }
  EXPECT_FALSE(Object());
  EXPECT_EQ(Object().uid(), "");
  EXPECT_FALSE(Object::parse("[]").ok());
}

TEST(ResourceVersions, CompareAsNumbersOfAnyLength) {
  const auto older = [](std::string_view a, std::string_view b) { return std::is_lt(compare_versions(a, b)); };
  EXPECT_TRUE(older("9", "10"));
  EXPECT_FALSE(older("10", "9"));
  EXPECT_TRUE(older("99999999999999999999998", "99999999999999999999999"));
  EXPECT_TRUE(std::is_eq(compare_versions("7", "7")));
  EXPECT_TRUE(older("", "1"));
}

RC_GTEST_PROP(ResourceVersionsProperty, AgreeWithTheOrderOfIntegers, (std::uint64_t a, std::uint64_t b)) {
  RC_ASSERT(compare_versions(std::to_string(a), std::to_string(b)) == (a <=> b));
}

struct RetryCase {
  const char* name;
  ApiError error;
  bool read_again;
  bool write_again;
};

TEST(RetryPolicyTable, ReadsAreRepeatedFreelyAndWritesOnlyWhenRefused) {
  const std::vector<RetryCase> cases{
      {"connection", ApiError::transport(ApiError::kConnection, ""), true, false},
      {"deadline", ApiError::transport(ApiError::kTimeout, ""), true, false},
      {"canceled", ApiError::transport(ApiError::kCanceled, ""), false, false},
      {"bad answer", ApiError::transport(ApiError::kBadAnswer, ""), false, false},
      {"429", ApiError::from_response(429, ""), true, true},
      {"500", ApiError::from_response(500, ""), true, false},
      {"503 with Retry-After", ApiError::from_response(503, "", 1s), true, true},
      {"409", ApiError::from_response(409, ""), false, false},
      {"410", ApiError::from_response(410, ""), false, false},
      {"422", ApiError::from_response(422, ""), false, false},
  };
  for (const RetryCase& c : cases) {
    EXPECT_EQ(retry_wait(kReadRetries, c.error, 1, 0.5).has_value(), c.read_again) << c.name;
    EXPECT_EQ(retry_wait(kWriteRetries, c.error, 1, 0.5).has_value(), c.write_again) << c.name;
  }
}

TEST(RetryPolicyTable, EndsAfterItsTriesAndObeysRetryAfter) {
  const ApiError busy = ApiError::from_response(429, "", 5s);
  EXPECT_FALSE(retry_wait(kWriteRetries, busy, kWriteRetries.max_tries, 0));
  EXPECT_GE(*retry_wait(kWriteRetries, busy, 1, 0.0), 5s);
  EXPECT_LE(*retry_wait(kWriteRetries, busy, 1, 0.999), 6s);
}

RC_GTEST_PROP(Backoff, StaysBetweenHalfTheFirstAndTheLongest, ()) {
  const int n = *rc::gen::inRange(0, 1000);
  const double random = *rc::gen::inRange(0, 1000) / 1000.0;
  const auto wait = backoff(800ms, 30s, n, random);
  RC_ASSERT(wait >= 400ms);
  RC_ASSERT(wait <= 30s);
}

TEST(TokenBucketTest, LetsABurstPassAndThenItsRate) {
  const auto clock = std::make_shared<FakeClock>();
  TokenBucket bucket(10, 2, clock);
  EXPECT_EQ(bucket.reserve(), 0s);
  EXPECT_EQ(bucket.reserve(), 0s);
  EXPECT_EQ(bucket.reserve(), 100ms);
  EXPECT_EQ(bucket.reserve(), 200ms);
  clock->advance(1s);
  EXPECT_EQ(bucket.reserve(), 0s);
  TokenBucket open(0, 1, clock);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(open.reserve(), 0s);
}

}  // namespace
}  // namespace loadline::kube
