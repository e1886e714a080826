// Estimates against measurements: one outcome per run, and summaries over groups of runs.
//
// Thread-safety: plain values, pure functions.
#pragma once

#include <string>
#include <vector>

#include "score/corpus.h"
#include "score/reading.h"

namespace loadline::score {

struct Outcome {
  std::string id, family, category, confidence;
  std::string skipped;  ///< why there is no prediction; empty when there is one
  Metric metric = Metric::Allocated;
  double predicted_gib = 0;
  double textbook_gib = 0;
  double measured_gib = 0;

  /// Positive when too much was predicted.
  [[nodiscard]] double error_percent() const { return 100 * (predicted_gib / measured_gib - 1); }
  [[nodiscard]] double textbook_error_percent() const { return 100 * (textbook_gib / measured_gib - 1); }
};

/// One outcome for every run whose `use` is score.
[[nodiscard]] std::vector<Outcome> score(const std::vector<Run>& runs, const Readings& readings);

struct Summary {
  std::string name;
  std::size_t runs = 0;
  std::size_t skipped = 0;
  double median = 0;           ///< of absolute errors, percent
  double p90 = 0;              ///< of absolute errors, percent
  double bias = 0;             ///< mean of signed errors, percent
  double worst_under = 0;      ///< largest under-estimate, percent >= 0
  double textbook_median = 0;  ///< of absolute errors, percent
};

/// Over all outcomes given.
[[nodiscard]] Summary summarize(std::string name, const std::vector<Outcome>& outcomes);
/// By family, then the mean of each figure over the families that have a prediction: no family counts more
/// for having published more.
[[nodiscard]] Summary macro(std::string name, const std::vector<Outcome>& outcomes);

/// The value that `share` of the sorted values do not exceed, interpolated; 0 when there are none.
[[nodiscard]] double quantile(std::vector<double> values, double share);

}  // namespace loadline::score
