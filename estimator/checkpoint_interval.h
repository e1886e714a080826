// How often to write a checkpoint, and how long a run takes when it is interrupted.
// Interruptions are a Poisson process of mean M; a write blocks for delta; a restart costs R.
//
// Thread-safety: pure functions.
// Errors: none; inputs outside their range are clamped to it (said at each), results are
// finite or +infinity, never NaN.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace loadline::estimator {

/// Seconds between checkpoints that make the run shortest:
///   tau* = M (1 + W0(-e^(-1 - delta/M))),
/// the exact minimiser of Daly's expected wall time (J. Daly, 2006), by Newton's method on
/// e^((tau + delta)/M) (tau/M - 1) + 1 = 0 from sqrt(2 delta M).
/// @param write_seconds delta > 0 (0 or less gives 0: write always)
/// @param mean_between_seconds M > 0 (0 or less gives 0; infinity gives infinity)
[[nodiscard]] double optimal_interval(double write_seconds, double mean_between_seconds);

/// Daly's expected wall time of `work_seconds` of work cut into intervals:
///   M e^(R/M) (e^((tau + delta)/M) - 1) work / tau.
/// Infinity for M: work (1 + delta/tau). The result may be +infinity: such a run never ends.
[[nodiscard]] double expected_wall(double work_seconds, double interval_seconds, double write_seconds,
                                   double restart_seconds, double mean_between_seconds);

struct IntervalInputs {
  double checkpoint_bytes = 0;
  std::optional<double> write_mib_per_s;  ///< what the gang can write; absent: kAssumedWriteMiBps
  double mean_between_seconds = 0;        ///< M of this gang
  std::optional<double> user_seconds;     ///< spec.checkpoint.interval when it is a duration
  std::optional<double> longest_seconds;  ///< the policy's maxInterval
};

/// Written when the pool does not say what its storage takes.
inline constexpr double kAssumedWriteMiBps = 500;
/// A run writes at least this often, however rare interruptions are.
inline constexpr double kLongestIntervalSeconds = 4 * 3600;
/// Not more often than this: below it writing itself disturbs the run.
inline constexpr double kShortestIntervalSeconds = 60;

struct Interval {
  double seconds = 0;
  double write_seconds = 0;         ///< blocking time of one write
  double mean_between_seconds = 0;  ///< as given
  std::string
      why;  ///< "every 14 min: Daly's optimum for 41 s of blocking write and one interruption of this gang per 2.6 h"
};

/// The interval to use with its reason: the user's, else the optimum within the bounds.
[[nodiscard]] Interval checkpoint_interval(const IntervalInputs& inputs);

}  // namespace loadline::estimator
