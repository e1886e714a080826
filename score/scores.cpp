#include "score/scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "estimator/estimate.h"
#include "score/textbook.h"

namespace loadline::score {
namespace {

constexpr double kGiBytes = static_cast<double>(kGiB);

/// The figure that is compared with the measurement. The allocator gives its cache back before it fails, so
/// what it holds is at most what the card has, unless more than that is handed out.
double figure(const estimator::Estimate& estimate, const Job& job, std::optional<double> card_gib) {
  double allocated = 0, held = 0;
  for (std::size_t i = 0; i < estimate.phase_count; ++i) {
    const estimator::PhaseUse& use = estimate.phases[i];
    if (job.stage && use.stage != *job.stage && job.layout.pipeline > 1) continue;
    allocated = std::max(allocated, use.allocated());
    held = std::max(held, job.metric == Metric::OnCard ? use.on_card() : use.reserved());
  }
  if (job.metric == Metric::Allocated) return allocated;
  // "80 GB" cards show 79.2 GiB.
  const double card = card_gib ? 0.99 * *card_gib * kGiBytes : held;
  return std::max(allocated, std::min(held, card));
}

Outcome outcome(const Run& run, const Readings& readings) {
  Outcome out;
  out.id = run.text("id");
  out.family = run.text("family");
  out.category = run.text("category");
  out.confidence = run.text("confidence");
  const std::variant<Job, Skipped> read = readings.read(run);
  if (const Skipped* skipped = std::get_if<Skipped>(&read)) {
    out.skipped = skipped->reason;
    return out;
  }
  const Job& job = std::get<Job>(read);
  out.metric = job.metric;
  out.measured_gib = run.number("measured_gib").value_or(0);
  const estimator::Estimate estimate = estimator::estimate(job.workload, job.layout);
  out.predicted_gib = figure(estimate, job, run.number("gpu_mem_gib")) / kGiBytes;
  out.textbook_gib = textbook_bytes(job.workload, job.layout) / kGiBytes;
  return out;
}

}  // namespace

std::vector<Outcome> score(const std::vector<Run>& runs, const Readings& readings) {
  std::vector<Outcome> out;
  for (const Run& run : runs) {
    if (run.text("use") == "score") out.push_back(outcome(run, readings));
  }
  return out;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

Summary summarize(std::string name, const std::vector<Outcome>& outcomes) {
  Summary s;
  s.name = std::move(name);
  std::vector<double> errors, textbook;
  double sum = 0;
  for (const Outcome& o : outcomes) {
    if (!o.skipped.empty()) {
      ++s.skipped;
      continue;
    }
    errors.push_back(std::abs(o.error_percent()));
    textbook.push_back(std::abs(o.textbook_error_percent()));
    sum += o.error_percent();
    s.worst_under = std::max(s.worst_under, -o.error_percent());
  }
  s.runs = errors.size();
  s.bias = errors.empty() ? 0 : sum / static_cast<double>(errors.size());
  s.median = quantile(errors, 0.5);
  s.p90 = quantile(errors, 0.9);
  s.textbook_median = quantile(textbook, 0.5);
  return s;
}

Summary macro(std::string name, const std::vector<Outcome>& outcomes) {
  std::map<std::string, std::vector<Outcome>> families;
  for (const Outcome& o : outcomes) families[o.family].push_back(o);
  Summary mean;
  mean.name = std::move(name);
  double counted = 0;
  for (const auto& [family, own] : families) {
    const Summary s = summarize(family, own);
    mean.runs += s.runs;
    mean.skipped += s.skipped;
    if (s.runs == 0) continue;
    ++counted;
    mean.median += s.median;
    mean.p90 += s.p90;
    mean.bias += s.bias;
    mean.textbook_median += s.textbook_median;
    mean.worst_under = std::max(mean.worst_under, s.worst_under);
  }
  if (counted > 0) {
    mean.median /= counted;
    mean.p90 /= counted;
    mean.bias /= counted;
    mean.textbook_median /= counted;
  }
  return mean;
}

}  // namespace loadline::score
