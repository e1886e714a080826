// Rules on one job that a table says best.
#include "placement/job_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace loadline::placement {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::string said_of_pattern(const std::string& pattern) {
  api::TrainingJobSpec spec;
  spec.progress.emplace().pattern = pattern;
  const std::vector<FieldError> errors = check_spec(spec);
  if (errors.empty()) return "";
  EXPECT_EQ(errors[0].field, "spec.progress.pattern");
  EXPECT_EQ(errors[0].value, pattern);
  return errors[0].detail;
}

TEST(ProgressPattern, IsTakenWithNamedGroupsInEitherSpellingOrWithOneGroup) {
  for (const char* pattern :
       {"(?<step>[0-9]+)", R"((epoch \d+): iteration (?P<step>\d+)/)", R"(iter=(\d+))", R"(\(step (?<step>\d+)\))",
        "step: +(?<step>[0-9]+) +loss: +(?<loss>[0-9.]+)", R"([(](?:a|b)[[:space:]]([0-9]+))"}) {
    EXPECT_EQ(said_of_pattern(pattern), "") << pattern;
  }
}

TEST(ProgressPattern, ThatCannotBeUsedIsRefusedWithWhatIsWrong) {
  for (const char* pattern : {"x", "(a)(b)", "(?<loss>[0-9.]+)", R"(\(step\))", "[(]", ""}) {
    EXPECT_THAT(said_of_pattern(pattern), HasSubstr("must have a group named step")) << pattern;
  }
  for (const char* pattern : {"(?<step>[0-9]+", "(?<step>[0-9+)", "(?<step>*)", "(?<=a)(?<step>b)", "(?<step>a)[[:x"}) {
    EXPECT_THAT(said_of_pattern(pattern), HasSubstr("must be a regular expression: ")) << pattern;
  }
  EXPECT_EQ(said_of_pattern("(?<step>[0-9]+)" + std::string(256, 'a')), "must be at most 256 bytes");
}

TEST(Parameters, AreBounded) {
  api::TrainingJobSpec spec;
  spec.model.parameters = 1e15;
  EXPECT_TRUE(check_spec(spec).empty());
  spec.model.parameters = 1e300;
  EXPECT_EQ(to_string(check_spec(spec).at(0)), "spec.model.parameters: Too large: 1.00e300: must be at most 1e15");
}

TEST(Template, GivesNoContainerAPartOfAGpu) {
  const json pod_template = json::parse(R"({"spec": {"containers": [
    {"name": "trainer", "resources": {"limits": {"nvidia.com/mig-1g.10gb": 2, "nvidia.com/gpu": "8"}}}]}})");
  const std::vector<FieldError> errors = check_template(pod_template);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(to_string(errors[0]),
            "spec.template.spec.containers[0].resources.limits[nvidia.com/mig-1g.10gb]: Forbidden: 2: a gang has whole "
            "GPUs; leave it out and say spec.gpus");
}

TEST(Template, IsToldWhatThePlanReplacesAndWhatItCannotTakeIntoAccount) {
  const json pod_template = json::parse(R"({"spec": {
    "affinity": {
      "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]},
      "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]}},
    "topologySpreadConstraints": [{"maxSkew": 1}],
    "containers": [{"name": "trainer", "resources": {"limits": {"amd.com/gpu": "4", "cpu": "8"}}}]}})");
  EXPECT_THAT(template_notes(pod_template),
              ElementsAre("spec.template.spec.containers[0].resources.limits[amd.com/gpu] 4 will be what the layout "
                          "needs per node; spec.gpus says how many the gang has",
                          HasSubstr("spec.template.spec.affinity.podAntiAffinity is the scheduler's alone"),
                          HasSubstr("spec.template.spec.topologySpreadConstraints is the scheduler's alone")));
}

}  // namespace
}  // namespace loadline::placement
