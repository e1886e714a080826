// A table of text read from CSV (RFC 4180: quoted fields, doubled quotes, line breaks inside quotes).
//
// Thread-safety: plain values; parse_csv is pure.
// Errors: a row with more or fewer fields than the header, and a quote that never ends, with the line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace loadline::score {

struct Csv {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< each as long as columns
};

[[nodiscard]] Result<Csv> parse_csv(std::string_view text);

}  // namespace loadline::score
