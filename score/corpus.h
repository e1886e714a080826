// Measured runs, one per row of a CSV file: what was trained, how, and how much memory was seen.
// Columns keep the words of their sources; score/reading.h turns them into a job.
//
// Thread-safety: plain values. Errors: a missing column or an unreadable file, named.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace loadline::score {

class Run {
 public:
  explicit Run(std::map<std::string, std::string, std::less<>> fields) : fields_(std::move(fields)) {}

  /// The field as written; empty when the column is empty or absent.
  [[nodiscard]] const std::string& text(std::string_view column) const;
  /// The number a field starts with: "2 (default)" is 2, "1e9" is 1e9. Nothing when it starts with none.
  [[nodiscard]] std::optional<double> number(std::string_view column) const;
  /// The field with letters lowered, for matching.
  [[nodiscard]] std::string lowered(std::string_view column) const;

 private:
  std::map<std::string, std::string, std::less<>> fields_;
};

/// The runs of a CSV text. Columns needed: id, family, use, metric_class, model, method, measured_gib,
/// confidence, category; the others may be absent.
[[nodiscard]] Result<std::vector<Run>> parse_corpus(std::string_view csv);

}  // namespace loadline::score
