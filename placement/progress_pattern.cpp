#include "placement/progress_pattern.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

namespace loadline::placement {
namespace {

/// std::regex recurses as deep as a pattern is long.
constexpr std::size_t kMostBytes = 256;

Error unusable(std::string why) { return Error::make(Error::Code::Invalid, std::move(why)); }

/// A pattern without names, and the index of the group that each stood for.
struct Unnamed {
  std::string text;
  std::map<std::string, std::size_t, std::less<>> groups;
  std::size_t count = 0;
};

/// Where a bracket expression that begins at `at` ends: behind its "]", which may also be inside of a "[:class:]".
std::size_t behind_brackets(std::string_view pattern, std::size_t at) {
  for (std::size_t i = at + 1; i < pattern.size(); ++i) {
    if (pattern[i] == ']') return i + 1;
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '[' && i + 1 < pattern.size() &&
               std::string_view(":.=").find(pattern[i + 1]) != std::string_view::npos) {
      const std::string end{pattern[i + 1], ']'};
      i = std::min(pattern.find(end, i + 2), pattern.size() - 2) + 1;
    }
  }
  return pattern.size();
}

/// The length of "(?<name>" or "(?P<name>" where `rest` begins with it, and the name; a lookbehind has none.
std::pair<std::size_t, std::string_view> name_at(std::string_view rest) {
  for (const std::string_view start : {"(?<", "(?P<"}) {
    if (!rest.starts_with(start)) continue;
    const std::size_t end = rest.find('>');
    if (end == std::string_view::npos || rest[start.size()] == '=' || rest[start.size()] == '!') continue;
    return {end + 1, rest.substr(start.size(), end - start.size())};
  }
  return {0, {}};
}

Unnamed without_names(std::string_view pattern) {
  Unnamed out;
  for (std::size_t i = 0; i < pattern.size();) {
    std::size_t taken = 1;
    if (pattern[i] == '\\') {
      taken = 2;
    } else if (pattern[i] == '[') {
      taken = behind_brackets(pattern, i) - i;
    } else if (pattern[i] == '(') {
      const auto [length, name] = name_at(pattern.substr(i));
      const bool captures = length > 0 || pattern.substr(i, 2) != "(?";
      if (captures) ++out.count;
      if (length > 0) {
        out.groups.emplace(name, out.count);
        out.text += '(';
        i += length;
        continue;
      }
    }
    out.text += pattern.substr(i, taken);
    i += taken;
  }
  return out;
}

std::size_t group_named(const Unnamed& unnamed, std::string_view name) {
  const auto found = unnamed.groups.find(name);
  return found != unnamed.groups.end() ? found->second : 0;
}

}  // namespace

Result<ProgressPattern> progress_pattern(const std::string& pattern) {
  if (pattern.size() > kMostBytes) return unusable("must be at most " + std::to_string(kMostBytes) + " bytes");
  const Unnamed unnamed = without_names(pattern);
  ProgressPattern out;
  out.step = group_named(unnamed, "step");
  out.loss = group_named(unnamed, "loss");
  out.tokens = group_named(unnamed, "tokens");
  if (out.step == 0 && unnamed.groups.empty() && unnamed.count == 1) out.step = 1;
  if (out.step == 0) return unusable("must have a group named step, such as (?<step>[0-9]+), or only one group");
  try {
    out.regex = std::regex(unnamed.text);
  } catch (const std::regex_error& problem) {
    return unusable(std::string("must be a regular expression: ") + problem.what());
  }
  return out;
}

}  // namespace loadline::placement
