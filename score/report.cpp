#include "score/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace loadline::score {
namespace {

using nlohmann::json;

std::map<std::string, std::vector<Outcome>> grouped(const std::vector<Outcome>& outcomes, std::string Outcome::*key) {
  std::map<std::string, std::vector<Outcome>> groups;
  for (const Outcome& o : outcomes) groups[o.*key].push_back(o);
  return groups;
}

std::vector<Outcome> confident(const std::vector<Outcome>& outcomes) {
  std::vector<Outcome> out;
  std::copy_if(outcomes.begin(), outcomes.end(), std::back_inserter(out),
               [](const Outcome& o) { return o.confidence != "low"; });
  return out;
}

std::string_view metric_text(Metric metric) {
  switch (metric) {
    case Metric::Allocated: return "allocated";
    case Metric::Reserved: return "reserved";
    case Metric::OnCard: return "on card";
  }
  return "";
}

/// Every summary of the report, in reading order.
std::vector<std::pair<std::string, Summary>> summaries(const std::vector<Outcome>& all) {
  const std::vector<Outcome> outcomes = confident(all);
  std::vector<std::pair<std::string, Summary>> out;
  for (const auto& [category, own] : grouped(outcomes, &Outcome::category)) {
    out.emplace_back("class, macro over families", macro(category, own));
  }
  for (const auto& [category, own] : grouped(outcomes, &Outcome::category)) {
    for (const auto& [family, few] : grouped(own, &Outcome::family)) {
      out.emplace_back("class and family", summarize(category + ", " + family, few));
    }
  }
  for (const auto& [family, own] : grouped(outcomes, &Outcome::family)) {
    out.emplace_back("family", summarize(family, own));
  }
  out.emplace_back("all", macro("all, macro over families", outcomes));
  return out;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}
std::string right(double value) {
  const std::string text = fixed(value, 1);
  return std::string(text.size() < 8 ? 8 - text.size() : 1, ' ') + text;
}
std::string right(std::size_t value) {
  const std::string text = std::to_string(value);
  return std::string(text.size() < 6 ? 6 - text.size() : 1, ' ') + text;
}

std::string summary_line(const Summary& s) {
  return padded(s.name, 46) + right(s.runs) + right(s.skipped) + right(s.median) + right(s.p90) + right(s.bias) +
         right(s.worst_under) + right(s.textbook_median) + "\n";
}

}  // namespace

json report_json(const std::vector<Outcome>& outcomes) {
  json rows = json::array();
  for (const Outcome& o : outcomes) {
    if (!o.skipped.empty()) {
      rows.push_back({{"id", o.id}, {"skipped", o.skipped}});
      continue;
    }
    rows.push_back({{"id", o.id},
                    {"family", o.family},
                    {"category", o.category},
                    {"predictedGiB", o.predicted_gib},
                    {"measuredGiB", o.measured_gib},
                    {"errorPercent", o.error_percent()}});
  }
  json summary = json::array();
  for (const auto& [over, s] : summaries(outcomes)) {
    summary.push_back({{"over", over},
                       {"name", s.name},
                       {"runs", s.runs},
                       {"skipped", s.skipped},
                       {"medianAbsolutePercent", s.median},
                       {"p90AbsolutePercent", s.p90},
                       {"biasPercent", s.bias},
                       {"worstUnderPercent", s.worst_under},
                       {"textbookMedianAbsolutePercent", s.textbook_median}});
  }
  return {{"rows", std::move(rows)}, {"summary", std::move(summary)}};
}

std::string report_text(const std::vector<Outcome>& outcomes, std::size_t worst) {
  std::string text;
  std::string section;
  for (const auto& [over, s] : summaries(outcomes)) {
    if (over != section) {
      section = over;
      text += (text.empty() ? "" : "\n") + padded("by " + section, 46) +
              "  runs  left  median     p90    bias   under  textbook\n";
    }
    text += summary_line(s);
  }
  std::map<std::string, std::size_t> reasons;
  std::vector<Outcome> predicted;
  for (const Outcome& o : outcomes) {
    if (o.skipped.empty()) {
      predicted.push_back(o);
    } else {
      ++reasons[o.skipped];
    }
  }
  text += "\nLeft out:\n";
  for (const auto& [reason, count] : reasons) text += right(count) + "  " + reason + "\n";
  std::sort(predicted.begin(), predicted.end(), [](const Outcome& a, const Outcome& b) {
    return std::abs(a.error_percent()) > std::abs(b.error_percent());
  });
  predicted.resize(std::min(worst, predicted.size()));
  if (!predicted.empty()) text += "\nLargest errors:\n";
  for (const Outcome& o : predicted) {
    text += right(o.error_percent()) + " %  " + fixed(o.predicted_gib, 2) + " for " + fixed(o.measured_gib, 2) +
            " GiB " + std::string(metric_text(o.metric)) + "  " + o.id + "\n";
  }
  return text;
}

}  // namespace loadline::score
