// How the words of a measured run are read as a job that can be sized: rules in score/data/readings.yaml,
// each with its reason, applied in order to every run. No rule names a single run.
//
// Thread-safety: immutable after construction. Ownership: by value.
// Errors: why a run cannot be expressed is a value, told to the reader of the score.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "estimator/estimate.h"
#include "estimator/layout.h"
#include "estimator/workload.h"
#include "score/corpus.h"

namespace loadline::score {

/// Which figure of the estimate a measurement is compared with.
enum class Metric {
  Allocated,  ///< what the framework's allocator has handed out
  Reserved,   ///< and what it holds in its cache
  OnCard,     ///< and context, communicators: what the card shows
};

struct Job {
  estimator::Workload workload;
  estimator::Layout layout;
  Metric metric = Metric::Allocated;
  std::optional<estimator::Stage> stage;  ///< where it was measured; absent: the fullest
};

/// A run that cannot be expressed, and why.
struct Skipped {
  std::string reason;
};

using Settings = std::map<std::string, std::string, std::less<>>;

class Readings {
 public:
  /// The rules compiled in.
  [[nodiscard]] static const Readings& builtin();
  [[nodiscard]] static Result<Readings> parse(std::string_view yaml);

  /// What the rules say of a run: keys as in the head of readings.yaml.
  [[nodiscard]] Settings settings(const Run& run) const;
  [[nodiscard]] std::variant<Job, Skipped> read(const Run& run) const;

 private:
  struct Rule {
    std::map<std::string, std::vector<std::string>> when;  ///< column to texts, one of which it must contain
    std::map<std::string, std::vector<std::string>> unless;
    Settings set;
  };
  std::vector<Rule> rules_;
};

}  // namespace loadline::score
