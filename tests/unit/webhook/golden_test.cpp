// Every *.request.json of tests/data/golden/admission against its *.response.json. To accept new answers run with
// LOADLINE_UPDATE_GOLDEN=1 and read the difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/unit/webhook/fixture.h"
#include "webhook/base64.h"
#include "webhook/review.h"

namespace loadline::webhook::testing {
namespace {

using nlohmann::json;

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden)) {
    const std::string file = entry.path().filename().string();
    const std::size_t end = file.find(".request.json");
    if (end != std::string::npos) all.push_back(file.substr(0, end));
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// The answer as people read it: the patch decoded.
json answer(const std::string& name) {
  const json review = review_named(name);
  const Request request = read_review(review).value();
  const Verdict verdict = name.starts_with("mutate") ? mutate(request) : validate(request, small_cluster());
  json response = review_response(request, verdict);
  if (response["response"].contains("patch")) {
    json& patch = response["response"]["patch"];
    patch = json::parse(base64_decode(patch.get<std::string>()).value());
  }
  return response;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, AnswersAsWritten) {
  const std::filesystem::path file = kGolden / (GetParam() + ".response.json");
  const json actual = answer(GetParam());
  if (std::getenv("LOADLINE_UPDATE_GOLDEN") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(file) << actual.dump(2) << '\n';
  }
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(actual.dump(2), read_json(file).dump(2));
}

INSTANTIATE_TEST_SUITE_P(Reviews, Golden, ::testing::ValuesIn(names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace loadline::webhook::testing
