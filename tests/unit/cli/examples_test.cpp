// The examples, as an engineer would try them offline. What is printed is kept word for word.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/command_line.h"
#include "tests/unit/cli/golden.h"

namespace loadline::cli {
namespace {

namespace fs = std::filesystem;

std::string examples(const std::string& folder) { return std::string(LOADLINE_SOURCE_DIR) + "/examples/" + folder; }

std::vector<std::string> jobs() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(examples("jobs"))) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

struct Outcome {
  int code;
  std::string text, errors;
};

Outcome call(const std::vector<std::string>& arguments) {
  std::istringstream in;
  std::ostringstream out, err;
  const int code = run(arguments, {in, out, err, *parse_rfc3339("2026-11-30T12:00:00Z")});
  return {code, out.str(), err.str()};
}

class Example : public ::testing::TestWithParam<std::string> {
 protected:
  static std::string file() { return examples("jobs/") + GetParam() + ".yaml"; }
  /// The one that is there to be refused.
  static bool fits() { return GetParam() != "llama-70b-full-on-l4"; }
};

TEST_P(Example, IsEstimated) {
  const Outcome outcome = call({"estimate", "-f", file()});
  EXPECT_EQ(outcome.code, fits() ? 0 : 1) << outcome.text << outcome.errors;
  loadline::testing::expect_golden("estimate-" + GetParam() + ".txt", outcome.text);
}

TEST_P(Example, IsPlannedOnTheExamplePoolsAndPolicies) {
  const Outcome outcome =
      call({"plan", "-f", file(), "--pools", examples("pools"), "--policies", examples("policies")});
  EXPECT_EQ(outcome.code, fits() ? 0 : 1) << outcome.text << outcome.errors;
  loadline::testing::expect_golden("plan-" + GetParam() + ".txt", outcome.text);
}

INSTANTIATE_TEST_SUITE_P(All, Example, ::testing::ValuesIn(jobs()), [](const auto& example) {
  std::string name = example.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace loadline::cli
