#include <gtest/gtest.h>

#include "operator/rules.h"

namespace loadline::controller {
namespace {

TEST(Progress, IsTheLastJsonLineWithAStep) {
  const auto progress =
      read_progress("{\"step\": 1}\ntext\n[rank0] {\"step\": 7, \"loss\": 1.5, \"tokens\": 3e6}\n{\"x\": 1}\n", {});
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->step, 7);
  EXPECT_EQ(progress->loss, 1.5);
  EXPECT_EQ(progress->tokens, 3e6);
}

TEST(Progress, IsAbsentWhenTheLogSaysNothing) {
  for (const char* log :
       {"", "hello\n", "{\"step\": \"seven\"}\n", "{\"step\": -1}\n", "{\"step\": 1", "{\"step\": 1e300}"}) {
    EXPECT_FALSE(read_progress(log, {})) << log;
  }
}

TEST(Progress, IsReadByAPatternWithANamedGroup) {
  api::ProgressSpec spec;
  spec.pattern = R"((epoch \d+): iteration (?P<step>\d+)/)";
  EXPECT_EQ(read_progress("epoch 3: iteration 250/ 1000\n", spec)->step, 250);
  spec.pattern = R"(iter=(\d+))";
  EXPECT_EQ(read_progress("iter=4\niter=5\n", spec)->step, 5);
}

TEST(Progress, IsReadByEveryGroupThatHasAName) {
  api::ProgressSpec spec;
  spec.pattern = "step: +(?<step>[0-9]+) +loss: +(?<loss>[0-9.]+)";
  const auto torchtitan = read_progress("[titan] step:  20  loss:  7.5233  memory: 60.1GiB\n", spec);
  ASSERT_TRUE(torchtitan);
  EXPECT_EQ(torchtitan->step, 20);
  EXPECT_EQ(torchtitan->loss, 7.5233);
  EXPECT_FALSE(torchtitan->tokens);
  spec.pattern = R"((?P<tokens>\S+) tokens [([](?:at|in) (?<when>\w+)\(?[)\]] (?P<loss>\S+) (?<step>\d+))";
  const auto reversed = read_progress("3e6 tokens [in epoch] nan 7\n", spec);
  ASSERT_TRUE(reversed);
  EXPECT_EQ(reversed->step, 7);
  EXPECT_EQ(reversed->tokens, 3e6);
  EXPECT_FALSE(reversed->loss) << "not a number";
}

TEST(Progress, SurvivesPatternsThatCannotBeUsed) {
  api::ProgressSpec spec;
  for (const std::string& pattern : {std::string("("), std::string(5000, 'a'), std::string("(a+)+$")}) {
    spec.pattern = pattern;
    EXPECT_FALSE(read_progress("step 1\n" + std::string(100'000, 'b') + "\n", spec)) << pattern.substr(0, 20);
  }
}

}  // namespace
}  // namespace loadline::controller
