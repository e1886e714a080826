// The answer of a command for one job: text for people, JSON for scripts.
//
// Thread-safety: plain values; pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace loadline::cli {

struct Report {
  std::string text;  ///< ends with a line break
  nlohmann::json data;
  bool fits = true;
};

/// A title with indented lines under it, and an empty line before; nothing when there are no lines.
[[nodiscard]] std::string section(const std::string& title, const std::vector<std::string>& lines);

}  // namespace loadline::cli
