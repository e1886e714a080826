#include "estimator/checkpoint_interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace loadline::estimator {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMiBBytes = 1024.0 * 1024.0;

std::string per_interruption(double mean_between_seconds) {
  if (std::isinf(mean_between_seconds)) return "no interruptions expected";
  return "one interruption of this gang per " + duration_text(mean_between_seconds);
}

}  // namespace

double optimal_interval(double write_seconds, double mean_between_seconds) {
  if (!(write_seconds > 0) || !(mean_between_seconds > 0)) return 0;
  if (std::isinf(mean_between_seconds)) return kInfinity;
  // With x = tau/M and d = delta/M: e^(x + d) (x - 1) + 1 = 0, multiplied by e^-(x + d) so that
  // nothing overflows. g is increasing and concave in x > 0 near the root: Newton converges.
  const double d = write_seconds / mean_between_seconds;
  double x = std::min(std::sqrt(2 * d), 1.0);
  for (int i = 0; i < 100; ++i) {
    const double e = std::exp(-(x + d));
    const double step = (x - 1 + e) / (1 - e);
    x -= step;
    if (std::abs(step) <= 1e-14 * std::max(x, 1e-12)) break;
  }
  return std::clamp(x, 0.0, 1.0) * mean_between_seconds;
}

double expected_wall(double work_seconds, double interval_seconds, double write_seconds, double restart_seconds,
                     double mean_between_seconds) {
  if (!(work_seconds > 0)) return 0;
  const double delta = std::max(0.0, write_seconds);
  const double tau = std::min(interval_seconds > 0 ? interval_seconds : work_seconds, work_seconds);
  if (std::isinf(mean_between_seconds)) return work_seconds * (1 + delta / tau);
  if (!(mean_between_seconds > 0)) return kInfinity;
  const double m = mean_between_seconds;
  return m * std::exp(std::max(0.0, restart_seconds) / m) * std::expm1((tau + delta) / m) * (work_seconds / tau);
}

Interval checkpoint_interval(const IntervalInputs& inputs) {
  Interval interval;
  interval.mean_between_seconds = inputs.mean_between_seconds;
  const bool assumed = !inputs.write_mib_per_s || !(*inputs.write_mib_per_s > 0);
  const double rate = assumed ? kAssumedWriteMiBps : *inputs.write_mib_per_s;
  interval.write_seconds = std::max(0.0, inputs.checkpoint_bytes) / (rate * kMiBBytes);

  std::string write = duration_text(interval.write_seconds) + " of blocking write";
  if (assumed) write += " (" + fixed(kAssumedWriteMiBps, 0) + " MiB/s assumed)";
  const std::string facts = write + " and " + per_interruption(inputs.mean_between_seconds);
  const auto say = [&](double seconds, const std::string& why) {
    interval.seconds = seconds;
    interval.why = "every " + duration_text(seconds) + ": " + why;
    return interval;
  };

  const double best = optimal_interval(interval.write_seconds, inputs.mean_between_seconds);
  if (inputs.user_seconds) {
    std::string why = "as asked; Daly's optimum would be " +
                      (std::isinf(best) ? std::string("never") : duration_text(best)) + " for " + facts;
    if (inputs.longest_seconds && *inputs.longest_seconds < *inputs.user_seconds) {
      return say(*inputs.longest_seconds,
                 "the policy's longest; " + duration_text(*inputs.user_seconds) + " was asked");
    }
    return say(*inputs.user_seconds, why);
  }
  if (inputs.longest_seconds && best > *inputs.longest_seconds) {
    return say(*inputs.longest_seconds, "the policy's longest; Daly's optimum is longer for " + facts);
  }
  if (best > kLongestIntervalSeconds) {
    return say(kLongestIntervalSeconds, "the longest used; Daly's optimum is longer for " + facts);
  }
  if (best < kShortestIntervalSeconds) {
    return say(kShortestIntervalSeconds, "the shortest used; Daly's optimum is shorter for " + facts);
  }
  return say(best, "Daly's optimum for " + facts);
}

}  // namespace loadline::estimator
