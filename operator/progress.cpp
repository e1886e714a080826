// Progress as the trainer tells it in its log: JSON lines, or a pattern of the user's.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/saturating.h"
#include "estimator/workload.h"
#include "operator/rules.h"

namespace loadline::controller {
namespace {

/// std::regex recurses per character: long lines and patterns are not given to it.
constexpr std::size_t kPatternBytes = 256, kLineBytes = 512;
constexpr std::size_t kLines = 50;

std::vector<std::string> last_lines(const std::string& log) {
  std::vector<std::string> lines;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kLines));
  return lines;
}

std::optional<LogProgress> from_json_line(const std::string& line) {
  if (line.find('{') == std::string::npos || line.find("\"step\"") == std::string::npos) return std::nullopt;
  const auto parsed = kube::parse_json(std::string_view(line).substr(line.find('{')));
  if (!parsed) return std::nullopt;
  const auto step = kube::int_at(*parsed, {"step"});
  if (!step || *step < 0) return std::nullopt;
  LogProgress progress;
  progress.step = *step;
  progress.tokens = kube::number_at(*parsed, {"tokens"});
  progress.loss = kube::number_at(*parsed, {"loss"});
  progress.checkpoint_step = kube::int_at(*parsed, {"checkpoint"});
  return progress;
}

/// The group named step, in Python's or ECMAScript's spelling, as an unnamed one with its index; 1 when none is named.
std::pair<std::string, std::size_t> unnamed(std::string pattern) {
  for (const char* name : {"(?P<step>", "(?<step>"}) {
    const std::size_t at = pattern.find(name);
    if (at == std::string::npos) continue;
    pattern.replace(at, std::string(name).size(), "(");
    std::size_t index = 1;
    for (std::size_t i = 0; i < at; ++i) {
      const bool escaped = i > 0 && pattern[i - 1] == '\\';
      if (pattern[i] == '(' && !escaped && pattern.compare(i, 2, "(?") != 0) ++index;
    }
    return {pattern, index};
  }
  return {pattern, 1};
}

std::optional<LogProgress> from_pattern(const std::vector<std::string>& lines, const std::string& pattern) {
  if (pattern.size() > kPatternBytes) return std::nullopt;
  try {
    const auto [text, group] = unnamed(pattern);
    const std::regex regex(text);
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      std::smatch match;
      if (line->size() > kLineBytes || !std::regex_search(*line, match, regex) || match.size() <= group) continue;
      const auto step = parse_quantity(match[group].str());
      if (step && *step >= 0) return LogProgress{*step, {}, {}, {}};
    }
  } catch (const std::regex_error&) {  // the user's pattern; the webhook says so
  }
  return std::nullopt;
}

std::optional<std::int64_t> total_steps(const api::TrainingJobSpec& spec) {
  const api::TrainingSpec& t = spec.training;
  if (t.steps && *t.steps > 0) return sat_from_double(std::ceil(*t.steps));
  if (!t.globalBatchSize || !t.sequenceLength) return std::nullopt;
  double tokens = t.tokens.value_or(0);
  if (t.epochs && t.datasetTokens) tokens = *t.epochs * *t.datasetTokens;
  const double per_step = static_cast<double>(*t.globalBatchSize) * static_cast<double>(*t.sequenceLength);
  if (tokens <= 0 || per_step <= 0) return std::nullopt;
  return sat_from_double(std::ceil(tokens / per_step));
}

}  // namespace

std::optional<LogProgress> read_progress(const std::string& log_tail, const std::optional<api::ProgressSpec>& spec) {
  const std::vector<std::string> lines = last_lines(log_tail);
  if (spec && spec->pattern) return from_pattern(lines, *spec->pattern);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (auto progress = from_json_line(*line)) return progress;
  }
  return std::nullopt;
}

void follow_progress(Draft& draft) {
  if (!draft.seen.log_tail) return;
  const auto seen = read_progress(*draft.seen.log_tail, draft.spec.progress);
  if (!seen) return;
  api::ProgressStatus progress = draft.status.progress.value_or(api::ProgressStatus{});
  if (progress.step == seen->step) return;
  progress.step = seen->step;
  progress.tokens = seen->tokens;
  progress.loss = seen->loss;
  progress.totalSteps = total_steps(draft.spec);
  if (progress.totalSteps && *progress.totalSteps > 0) {
    const double part = static_cast<double>(seen->step) / static_cast<double>(*progress.totalSteps);
    progress.percent = fixed(std::floor(std::min(part, 1.0) * 100), 0) + "%";
  }
  progress.updated = draft.now_text();
  draft.status.progress = progress;
  if (seen->checkpoint_step && draft.status.checkpoint) draft.status.checkpoint->lastStep = seen->checkpoint_step;
}

}  // namespace loadline::controller
