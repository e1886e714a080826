// What a person reads when a file is wrong, and what the codec keeps when it is right.
#include "api/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace loadline::api {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

json smallest_job() {
  return {{"apiVersion", "loadline.dev/v1alpha1"},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", "j"}}},
          {"spec",
           {{"model", {{"preset", "llama-3.1-8b"}}},
            {"training", {{"sequenceLength", 4096}}},
            {"template", {{"spec", json::object()}}}}}};
}

template <class T>
std::vector<std::string> errors_of(const Result<T>& result) {
  std::vector<std::string> lines;
  if (result.ok()) return lines;
  for (const FieldError& error : result.error().fields) lines.push_back(to_string(error));
  return lines;
}

std::vector<std::string> job_errors(const json& patch) {
  json job = smallest_job();
  job.merge_patch(patch);
  return errors_of(parse_training_job(job, UnknownFields::Reject));
}

TEST(Codec, ReadsTheSmallestJob) {
  const auto job = parse_training_job(smallest_job(), UnknownFields::Reject);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->metadata.name, "j");
  EXPECT_EQ(job->spec.model.preset, "llama-3.1-8b");
  EXPECT_EQ(job->spec.training.sequenceLength, 4096);
  EXPECT_FALSE(job->spec.gpus.has_value());
}

TEST(Codec, WritesBackWhatItRead) {
  const json object = smallest_job();
  EXPECT_EQ(to_json(*parse_training_job(object, UnknownFields::Reject)), object);
}

TEST(Codec, GathersEveryErrorInOneGo) {
  const json patch = json::parse(R"({"spec": {
    "training": {"sequenceLength": "4096", "method": "lorra", "microBatchSize": 1.5},
    "placement": {"pools": ["a", "b", 3]},
    "gpu": {"count": 8},
    "suspend": "true"}})");
  EXPECT_THAT(
      job_errors(patch),
      ElementsAre(R"(spec.training.method: Unsupported value: "lorra": did you mean "lora"? supported values: )"
                  R"("full", "lora", "qlora", "freeze")",
                  R"(spec.training.sequenceLength: Invalid value: "4096": must be a whole number, without quotes)",
                  R"(spec.training.microBatchSize: Invalid value: 1.5: must be a whole number)",
                  R"(spec.placement.pools[2]: Invalid value: 3: must be text: write it in quotes, "3")",
                  R"(spec.suspend: Invalid value: "true": must be true or false, without quotes)",
                  R"(spec.gpu: Invalid value: {count: 8}: unknown field; did you mean "gpus"?)"));
}

TEST(Codec, SaysWhichFieldsAreMissing) {
  EXPECT_THAT(job_errors({{"spec", {{"model", nullptr}, {"template", nullptr}}}}),
              ElementsAre("spec.model: Required value: must be given", "spec.template: Required value: must be given"));
}

TEST(Codec, JudgesApiVersionAndKindBeforeAnythingElse) {
  EXPECT_THAT(
      job_errors({{"apiVersion", "loadline.dev/v2"}, {"kind", "TrainJob"}, {"spec", 7}}),
      ElementsAre(R"(apiVersion: Unsupported value: "loadline.dev/v2": supported values: "loadline.dev/v1alpha1")",
                  R"(kind: Unsupported value: "TrainJob": supported values: "TrainingJob")"));
}

TEST(Codec, TakesWholeNumbersInAnyNotation) {
  json job = smallest_job();
  job["spec"]["training"]["sequenceLength"] = json::parse("8.192e+03");
  job["spec"]["model"] = {{"parameters", json::parse("8.03e+09")}};
  const auto parsed = parse_training_job(job, UnknownFields::Reject);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->spec.training.sequenceLength, 8192);
  EXPECT_EQ(parsed->spec.model.parameters, 8.03e9);
}

TEST(Codec, RefusesNumbersBeyondInt64InsteadOfWrappingThem) {
  for (const char* number : {"18446744073709551615", "9223372036854775808", "1e30", "-1e30"}) {
    const auto lines = job_errors({{"spec", {{"gpus", {{"count", json::parse(number)}}}}}});
    ASSERT_THAT(lines, SizeIs(1)) << number;
    EXPECT_THAT(lines[0], testing::HasSubstr("Too large")) << number;
  }
}

TEST(Codec, KeepsFreeFormJsonAsItIs) {
  json job = smallest_job();
  const json pasted = json::parse(R"({"model_type": "llama", "rope_scaling": {"factor": 8.0, "x": [1, null, {}]}})");
  job["spec"]["model"] = {{"huggingFaceConfig", pasted}};
  const auto parsed = parse_training_job(job, UnknownFields::Reject);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->spec.model.huggingFaceConfig, pasted);
  EXPECT_EQ(to_json(*parsed), job);
}

TEST(Codec, RefusesFreeFormJsonThatNestsWithoutEnd) {
  json deep = json::object();
  for (int i = 0; i < 100000; ++i) deep = json{{"a", std::move(deep)}};
  json job = smallest_job();
  job["spec"]["template"] = std::move(deep);
  EXPECT_THAT(errors_of(parse_training_job(job, UnknownFields::Reject)),
              ElementsAre("spec.template: Too large: {a: {a: {a: {...}}}}: must nest at most 64 levels deep"));
}

TEST(Codec, IgnoresUnknownFieldsOfANewerServerWhenAskedTo) {
  json job = smallest_job();
  job["spec"]["fromTheFuture"] = 1;
  job["status"] = {{"phase", "Running"}, {"alsoNew", json::array({1})}};
  const auto parsed = parse_training_job(job, UnknownFields::Ignore);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->status.phase, "Running");
}

TEST(Codec, LeavesMetadataOfOthersAlone) {
  EXPECT_THAT(job_errors({{"metadata", {{"managedFields", json::array({json::object()})}, {"selfLink", "/x"}}}}),
              IsEmpty());
}

TEST(Codec, AnOwnerReferenceWithFieldsOfANewerKubernetesIsRead) {
  EXPECT_THAT(job_errors({{"metadata", {{"ownerReferences", json::array({{{"kind", "X"}, {"new", 1}}})}}}}), IsEmpty());
}

TEST(Codec, NullIsAbsent) {
  EXPECT_THAT(job_errors(json::parse(R"({"metadata": {"creationTimestamp": null}})")), IsEmpty());
  json job = smallest_job();
  for (const char* field : {"gpus", "placement", "suspend", "queueName"}) job["spec"][field] = nullptr;
  job["status"] = nullptr;
  EXPECT_THAT(errors_of(parse_training_job(job, UnknownFields::Reject)), IsEmpty());
}

TEST(Codec, AnEmptyStructIsKeptApartFromAnAbsentOne) {
  json job = smallest_job();
  job["spec"]["parallelism"] = json::object();
  const auto parsed = parse_training_job(job, UnknownFields::Reject);
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->spec.parallelism.has_value());
  EXPECT_EQ(to_json(*parsed), job);
}

TEST(Codec, ShowsLongValuesCutAndOnOneLine) {
  const auto lines = job_errors({{"spec", {{"training", {{"method", std::string(5000, 'x') + "\n"}}}}}});
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_LT(lines[0].size(), 256U);
  const auto newline = job_errors({{"spec", {{"training", {{"method", "lo\nra\x01"}}}, {"a\nb", 1}}}});
  for (const std::string& line : newline) EXPECT_EQ(line.find_first_of("\n\x01"), std::string::npos) << line;
}

TEST(Codec, SurvivesTextThatIsNotUtf8) {
  json job = smallest_job();
  job["spec"]["training"]["method"] = "\xff\xfe";
  job["spec"]["\xff"] = 1;
  EXPECT_THAT(errors_of(parse_training_job(job, UnknownFields::Reject)), SizeIs(2));
}

TEST(Codec, ListsFiftyErrorsAndCountsTheRest) {
  json job = smallest_job();
  job["spec"]["placement"]["pools"] = std::vector<int>(1000, 1);
  const auto lines = errors_of(parse_training_job(job, UnknownFields::Reject));
  ASSERT_THAT(lines, SizeIs(51));
  EXPECT_EQ(lines.back(), "object: Invalid value: 1000 errors: only the first 50 are listed");
}

TEST(Codec, GivesAVerdictOnAnyRoot) {
  for (const char* text : {"null", "[]", "7", "\"x\"", "true", "{}", R"({"spec": []})"}) {
    const json root = json::parse(text);
    EXPECT_FALSE(parse_training_job(root, UnknownFields::Reject).ok()) << text;
    EXPECT_FALSE(parse_placement_policy(root, UnknownFields::Ignore).ok()) << text;
    EXPECT_FALSE(parse_gpu_pool(root, UnknownFields::Ignore).ok()) << text;
  }
}

TEST(Codec, NamesTheKeyOfAMapInThePath) {
  const json pool = {{"spec", {{"nodeSelector", {{"cloud.google.com/gke-nodepool", 7}}}}}};
  EXPECT_THAT(errors_of(parse_gpu_pool(pool, UnknownFields::Reject)),
              ElementsAre(R"(spec.nodeSelector["cloud.google.com/gke-nodepool"]: Invalid value: 7: must be text: )"
                          R"(write it in quotes, "7")"));
}

}  // namespace
}  // namespace loadline::api
