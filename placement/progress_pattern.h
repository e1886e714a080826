// spec.progress.pattern, made ready to be searched for: admission refuses one that cannot be used, the operator reads
// the trainer's log by it.
//
// Thread-safety: plain values; pure functions. Errors: values, in the words that follow the pattern in a refusal.
#pragma once

#include <cstddef>
#include <regex>
#include <string>

#include "base/result.h"

namespace loadline::placement {

/// A pattern whose groups carry no names any more, as std::regex knows none, and the index of each that had one.
struct ProgressPattern {
  std::regex regex;
  std::size_t step = 0;
  std::size_t loss = 0;    ///< 0: there is none
  std::size_t tokens = 0;  ///< 0: there is none
};

/// Groups may be named in Python's spelling or in ECMAScript's. The step is the group of that name, or the only group
/// of a pattern without names.
[[nodiscard]] Result<ProgressPattern> progress_pattern(const std::string& pattern);

}  // namespace loadline::placement
