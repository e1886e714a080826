// Rules of admission that a table or a property says better than a golden file.
#include "webhook/review.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/unit/webhook/fixture.h"
#include "webhook/defaults.h"

namespace loadline::webhook::testing {
namespace {

using nlohmann::json;

json good_job() { return review_named("validate-job-that-fits")["request"]["object"]; }

json review_of(json object, json old = nullptr) {
  json review = review_named("validate-job-that-fits");
  review["request"]["object"] = std::move(object);
  review["request"]["operation"] = old.is_null() ? "CREATE" : "UPDATE";
  review["request"]["oldObject"] = std::move(old);
  return review;
}

Verdict judge(const json& object, const json& old = nullptr, const Snapshot& snapshot = small_cluster()) {
  const json review = review_of(object, old);
  return validate(read_review(review).value(), snapshot);
}

std::vector<std::string> fields(const Verdict& verdict) {
  std::vector<std::string> all;
  for (const FieldError& cause : verdict.causes) all.push_back(cause.field);
  return all;
}

bool says(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

json with_gpu_resources(const json& resources) {
  json job = good_job();
  job["spec"]["template"]["spec"]["containers"][0]["resources"] = resources;
  return job;
}

TEST(GpuQuantities, WholeAmountsPassInAnySpellingAndFractionsDoNot) {
  for (const char* whole : {"2000m", "1e0", "8", "0"}) {
    EXPECT_TRUE(judge(with_gpu_resources({{"limits", {{"nvidia.com/gpu", whole}}}})).allowed()) << whole;
  }
  for (const char* wrong : {"1500m", "0.5", "one", "-1", ""}) {
    const Verdict verdict = judge(with_gpu_resources({{"limits", {{"nvidia.com/gpu", wrong}}}}));
    ASSERT_EQ(verdict.causes.size(), 1U) << wrong;
    EXPECT_EQ(verdict.causes[0].field, "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]");
    EXPECT_EQ(verdict.causes[0].value, wrong) << "the value as typed";
  }
}

TEST(GpuQuantities, RequestAndLimitMustBeEqualByValue) {
  const auto both = [](const char* request, const char* limit) {
    return judge(
        with_gpu_resources({{"requests", {{"nvidia.com/gpu", request}}}, {"limits", {{"nvidia.com/gpu", limit}}}}));
  };
  EXPECT_TRUE(both("8", "8000m").allowed());
  EXPECT_EQ(fields(both("6", "8")),
            std::vector<std::string>{"spec.template.spec.containers[0].resources.requests[nvidia.com/gpu]"});
  EXPECT_EQ(fields(judge(with_gpu_resources({{"requests", {{"nvidia.com/gpu", "8"}}}}))),
            std::vector<std::string>{"spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]"});
}

TEST(GpuQuantities, OnlyTheTrainerHasGpus) {
  json job = good_job();
  const json one = {{"limits", {{"nvidia.com/gpu", 1}}}};
  job["spec"]["template"]["spec"]["containers"].push_back({{"name", "viewer"}, {"image", "x"}, {"resources", one}});
  job["spec"]["template"]["spec"]["initContainers"] = {{{"name", "warm"}, {"image", "x"}, {"resources", one}}};
  const Verdict verdict = judge(job);
  EXPECT_EQ(fields(verdict),
            (std::vector<std::string>{"spec.template.spec.containers[1].resources.limits[nvidia.com/gpu]",
                                      "spec.template.spec.initContainers[0].resources.limits[nvidia.com/gpu]"}));
}

TEST(Template, TheTrainerIsTheOneSoNamedOrTheOnlyOne) {
  json job = good_job();
  json& containers = job["spec"]["template"]["spec"]["containers"];
  containers[0]["name"] = "main";
  EXPECT_TRUE(judge(job).allowed());
  containers.push_back({{"name", "viewer"}, {"image", "x"}});
  EXPECT_EQ(fields(judge(job)), std::vector<std::string>{"spec.template.spec.containers"});
}

TEST(Template, FieldsThatBelongToLoadlineAreRefused) {
  json job = good_job();
  job["spec"]["template"]["completions"] = 4;
  job["spec"]["template"]["spec"]["restartPolicy"] = "Always";
  job["spec"]["template"]["spec"]["nodeName"] = "a100-0";
  EXPECT_EQ(fields(judge(job)),
            (std::vector<std::string>{"spec.template.completions", "spec.template.spec.restartPolicy",
                                      "spec.template.spec.nodeName"}));
  job = good_job();
  job["spec"]["template"]["spec"]["restartPolicy"] = "Never";
  EXPECT_TRUE(judge(job).allowed());
}

TEST(Ratcheting, AnOldObjectThatBreaksANewerRuleCanStillBeEdited) {
  json old = good_job();
  old["spec"]["queueName"] = "legacy";
  json fresh = old;
  fresh["metadata"]["labels"] = {{"team", "nlp"}};
  fresh["spec"]["ttlSecondsAfterFinished"] = 60;
  EXPECT_FALSE(judge(old).allowed()) << "as a new object it is refused";
  EXPECT_TRUE(judge(fresh, old).allowed());
  fresh["spec"]["ttlSecondsAfterFinished"] = -1;
  EXPECT_EQ(fields(judge(fresh, old)), std::vector<std::string>{"spec.ttlSecondsAfterFinished"});
}

TEST(Immutability, WhatFollowsFromOtherFieldsIsNoChangeWhenItIsSaid) {
  json old = review_named("mutate-job-with-an-architecture")["request"]["object"];
  json fresh = old;
  fresh["spec"]["model"]["architecture"]["kvHeads"] = old["spec"]["model"]["architecture"]["heads"];
  EXPECT_TRUE(judge(fresh, old).causes.empty());
  fresh["spec"]["model"]["architecture"]["kvHeads"] = 1;
  EXPECT_EQ(fields(judge(fresh, old)), std::vector<std::string>{"spec.model"});
}

TEST(Immutability, AddingRemovingAndChangingAreAllRefusedWhileTheJobMayRun) {
  json with = good_job();
  with["spec"]["placement"] = {{"capacityType", "on-demand"}};
  json other = good_job();
  other["spec"]["placement"] = {{"capacityType", "any"}};
  const std::vector<std::string> refused{"spec.placement"};
  EXPECT_EQ(fields(judge(with, good_job())), refused);
  EXPECT_EQ(fields(judge(good_job(), with)), refused);
  EXPECT_EQ(judge(other, with).causes.at(0).field, "spec.placement");
  EXPECT_NE(judge(other, with).causes.at(0).detail.find("suspend"), std::string::npos) << "says when it can change";
}

TEST(Immutability, WhatAlwaysMayChangeMay) {
  json fresh = good_job();
  fresh["spec"]["suspend"] = true;
  fresh["spec"]["activeDeadlineSeconds"] = 3600;
  EXPECT_TRUE(judge(fresh, good_job()).allowed());
}

TEST(Unjudged, WithoutPoolsTheNeedIsSaidAndNothingIsRefused) {
  Snapshot empty;
  empty.complete = true;
  const Verdict none = judge(good_job(), nullptr, empty);
  EXPECT_TRUE(none.allowed());
  EXPECT_TRUE(says(none.warnings, "GiB per GPU"));
  EXPECT_TRUE(says(none.warnings, "no GPU pool is known yet"));
  empty.complete = false;
  EXPECT_TRUE(says(judge(good_job(), nullptr, empty).warnings, "still being read"));
}

TEST(Unjudged, ResumingAJobThatNoLongerFitsWarnsAndPasses) {
  json old = review_named("validate-job-that-cannot-fit")["request"]["object"];
  json fresh = old;
  old["spec"]["suspend"] = true;
  const Verdict verdict = judge(fresh, old);
  EXPECT_TRUE(verdict.allowed());
  EXPECT_TRUE(says(verdict.warnings, "cannot run as it is"));
}

TEST(Sizes, HugeCountsAreTooLargeAndNeverSmall) {
  json job = good_job();
  job["spec"]["gpus"]["count"] = 9223372036854775807LL;
  EXPECT_EQ(fields(judge(job)).at(0), "spec.gpus.count");
  job = good_job();
  job["spec"]["training"]["sequenceLength"] = 9223372036854775807LL;
  EXPECT_FALSE(judge(job).allowed());
}

TEST(Warnings, FitIntoHeadersHoweverManyPoolsThereAre) {
  Verdict verdict;
  for (int i = 0; i < 100; ++i) verdict.warnings.push_back(std::string(400, 'x') + "\n\t\x01");
  const json response = review_response(Request{}, verdict)["response"];
  std::size_t total = 0;
  for (const json& warning : response["warnings"]) {
    const std::string text = warning.get<std::string>();
    EXPECT_LE(text.size(), 256U);
    EXPECT_EQ(std::count_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }), 0);
    total += text.size();
  }
  EXPECT_LE(total, 4096U);
}

TEST(Envelope, WhatIsNoReviewIsAnErrorAndNotAnAnswer) {
  for (const char* text : {"{}", "[]", "null", R"({"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"})",
                           R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})",
                           R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1"}})",
                           R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":7}})"}) {
    EXPECT_FALSE(read_review(json::parse(text)).ok()) << text;
  }
}

TEST(Mutate, AppliedToItsOwnOutputChangesNothing) {
  const json review = review_named("mutate-job-with-an-architecture");
  const Verdict first = mutate(read_review(review).value());
  ASSERT_EQ(first.patch.size(), 2U);
  json patched = review;
  patched["request"]["object"] = review["request"]["object"].patch(first.patch);
  EXPECT_TRUE(mutate(read_review(patched).value()).patch.empty());
}

TEST(Mutate, LeavesADefaultThatTheStoredObjectLacksAlone) {
  json review = review_named("mutate-job-with-an-architecture");
  review["request"]["operation"] = "UPDATE";
  review["request"]["oldObject"] = review["request"]["object"];
  EXPECT_TRUE(mutate(read_review(review).value()).patch.empty());
}

TEST(Mutate, PointersAreEscaped) { EXPECT_EQ(json_pointer({"a/b", "c~d", ""}), "/a~1b/c~0d/"); }

/// Every way an optional field can be absent, anywhere in the object: a verdict, never a fault.
TEST(Totality, EachFieldAbsentNullOrEmptyGivesAVerdict) {
  const Snapshot snapshot = small_cluster();
  const json flat = good_job().flatten();
  for (const json& replacement : {json(), json::object(), json::array(), json(""), json(-1), json(1e300), json(true)}) {
    for (const auto& [pointer, value] : flat.items()) {
      for (auto at = json::json_pointer(pointer); !at.empty(); at = at.parent_pointer()) {
        json job = good_job();
        job[at] = replacement;
        const json review = review_of(job, good_job());
        const Request request = read_review(review).value();
        EXPECT_NE(validate(request, snapshot).kind, Verdict::Kind::Fault) << at.to_string();
        EXPECT_EQ(mutate(request).kind, Verdict::Kind::Allowed) << at.to_string();
      }
    }
  }
}

RC_GTEST_PROP(Totality, AnyNumbersGiveAVerdict, ()) {
  json job = good_job();
  job["spec"]["gpus"]["count"] = *rc::gen::arbitrary<std::int64_t>();
  job["spec"]["training"]["sequenceLength"] = *rc::gen::arbitrary<std::int64_t>();
  job["spec"]["training"]["microBatchSize"] = *rc::gen::arbitrary<std::int64_t>();
  job["spec"]["training"]["globalBatchSize"] = *rc::gen::arbitrary<std::int64_t>();
  job["spec"]["parallelism"]["tensor"] = *rc::gen::arbitrary<std::int64_t>();
  static const Snapshot snapshot = small_cluster();
  const json review = review_of(job);
  RC_ASSERT(validate(read_review(review).value(), snapshot).kind != Verdict::Kind::Fault);
}

}  // namespace
}  // namespace loadline::webhook::testing
