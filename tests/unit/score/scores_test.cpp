#include "score/scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "score/report.h"
#include "tests/unit/score/run_builder.h"

namespace loadline::score {
namespace {

Outcome predicted(const std::string& family, double predicted_gib, double measured_gib) {
  Outcome o;
  o.id = family + "-run";
  o.family = family;
  o.category = "full-1gpu";
  o.confidence = "high";
  o.predicted_gib = o.textbook_gib = predicted_gib;
  o.measured_gib = measured_gib;
  return o;
}

TEST(Scores, InterpolateQuantiles) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({3}, 0.9), 3);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 1), 4);
}

TEST(Scores, TellBiasFromErrorAndNameTheWorstUnderestimate) {
  const Summary s = summarize("two", {predicted("a", 11, 10), predicted("a", 8, 10)});
  EXPECT_EQ(s.runs, 2U);
  EXPECT_NEAR(s.median, 15, 1e-9);
  EXPECT_NEAR(s.bias, -5, 1e-9);
  EXPECT_NEAR(s.worst_under, 20, 1e-9);
}

TEST(Scores, CountEveryFamilyOnceHoweverMuchItPublished) {
  std::vector<Outcome> outcomes(9, predicted("prolific", 10, 10));
  outcomes.push_back(predicted("rare", 12, 10));
  EXPECT_NEAR(macro("all", outcomes).median, 10, 1e-9);
  EXPECT_NEAR(summarize("all", outcomes).median, 0, 1e-9);
}

TEST(Scores, OnlyRunsThatArePeaksToPredict) {
  EXPECT_EQ(score({run(), run({{"use", "delta-only"}})}, Readings::builtin()).size(), 1U);
}

TEST(Scores, HoldTheCacheOfTheAllocatorToWhatTheCardHas) {
  const Columns card{{"metric_class", "nvidia-smi"}, {"micro_batch", "8"}};
  Columns small = card;
  small["gpu_mem_gib"] = "40";
  const double free = score({run(card)}, Readings::builtin()).front().predicted_gib;
  const double held = score({run(small)}, Readings::builtin()).front().predicted_gib;
  EXPECT_GT(free, 40);
  EXPECT_NEAR(held, 0.99 * 40, 1e-9);
}

TEST(Report, ListsEveryRunAsPredictedOrLeftOut) {
  const std::vector<Outcome> outcomes = score({run(), run({{"id", "other"}, {"seq_len", ""}})}, Readings::builtin());
  const nlohmann::json report = report_json(outcomes);
  ASSERT_EQ(report["rows"].size(), 2U);
  EXPECT_EQ(report["rows"][0]["id"], "a-run");
  EXPECT_EQ(report["rows"][0]["family"], "hf-tests");
  EXPECT_EQ(report["rows"][0]["category"], "lora-1gpu");
  EXPECT_EQ(report["rows"][0]["measuredGiB"], 24.9);
  EXPECT_NEAR(report["rows"][0]["errorPercent"], 100 * (report["rows"][0]["predictedGiB"].get<double>() / 24.9 - 1),
              1e-9);
  EXPECT_EQ(report["rows"][1],
            (nlohmann::json{{"id", "other"}, {"skipped", "the tokens of a sequence are not stated"}}));
  EXPECT_FALSE(report["summary"].empty());
  EXPECT_THAT(report_text(outcomes, 1), testing::HasSubstr("Largest errors:"));
}

}  // namespace
}  // namespace loadline::score
