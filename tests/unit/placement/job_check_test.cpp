// Rules on one job that a table says best.
#include "placement/job_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::placement {
namespace {

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

}  // namespace
}  // namespace loadline::placement
