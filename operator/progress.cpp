// Progress as the trainer tells it in its log: JSON lines, or a pattern of the user's.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/saturating.h"
#include "estimator/workload.h"
#include "operator/rules.h"
#include "placement/progress_pattern.h"

namespace loadline::controller {
namespace {

/// std::regex recurses per character: long lines are not given to it.
constexpr std::size_t kLineBytes = 512;
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

/// A group's text as a number; nothing when there is no such group, or it is none.
std::optional<double> number_in(const std::smatch& match, std::size_t group) {
  if (group == 0) return std::nullopt;
  const std::string text = match[group].str();
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<LogProgress> from_pattern(const std::vector<std::string>& lines, const std::string& text) {
  const auto pattern = placement::progress_pattern(text);
  if (!pattern) return std::nullopt;
  try {
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      std::smatch match;
      if (line->size() > kLineBytes || !std::regex_search(*line, match, pattern->regex)) continue;
      const auto step = parse_quantity(match[pattern->step].str());
      if (!step || *step < 0) continue;
      return LogProgress{*step, number_in(match, pattern->tokens), number_in(match, pattern->loss), {}};
    }
  } catch (const std::regex_error&) {  // a search that takes too long or too much
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
