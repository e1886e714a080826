#include "cli/report.h"

namespace loadline::cli {

std::string section(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "\n" + title + ":\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

}  // namespace loadline::cli
