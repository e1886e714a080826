// After an attempt: whether the job is over, and when the next attempt may start.

#include <algorithm>
#include <cmath>

#include "api/names.h"
#include "operator/rules.h"

namespace loadline::controller {
namespace {

using api::AttemptCause;

constexpr std::int64_t kDefaultMaxFailures = 3;
constexpr double kUserBackoffSeconds = 30;
/// After losses that came at once: nodes that look free and refuse every pod, or never come up.
constexpr double kInfrastructureBackoffSeconds = 10;
constexpr double kLongestBackoffSeconds = 600;
/// An attempt that ran longer than this was not refused at once; its loss needs no pause.
constexpr std::chrono::minutes kShortLife{5};

/// How many of the newest attempts ended with `cause` one after the other, each of them briefly if `brief`.
int trailing(const api::TrainingJobStatus& status, AttemptCause cause, bool brief) {
  int count = 0;
  for (auto it = status.attempts.rbegin(); it != status.attempts.rend() && it->cause == cause; ++it) {
    const auto start = parse_rfc3339(it->startTime.value_or(""));
    const auto end = parse_rfc3339(it->endTime.value_or(""));
    if (brief && start && end && *end - *start > kShortLife) break;
    ++count;
  }
  return count;
}

/// A first wait that is longer than the longest stays as it is.
double doubling(double first, int times) {
  return std::min(first * std::exp2(std::clamp(times - 1, 0, 30)), std::max(first, kLongestBackoffSeconds));
}

}  // namespace

std::optional<TimePoint> restart_time(const api::TrainingJobSpec& spec, const api::TrainingJobStatus& status) {
  if (status.attempts.empty()) return std::nullopt;
  const api::AttemptStatus& last = status.attempts.back();
  const auto end = parse_rfc3339(last.endTime.value_or(""));
  if (!last.cause || !end) return std::nullopt;
  double seconds = 0;
  if (*last.cause == AttemptCause::UserFailure) {
    const auto wish = spec.restart && spec.restart->backoff ? parse_duration(*spec.restart->backoff) : std::nullopt;
    seconds = doubling(wish.value_or(kUserBackoffSeconds), trailing(status, AttemptCause::UserFailure, false));
  } else if (*last.cause == AttemptCause::Infrastructure) {
    const int times = trailing(status, AttemptCause::Infrastructure, true);
    if (times > 0) seconds = doubling(kInfrastructureBackoffSeconds, times);
  }
  if (seconds <= 0) return std::nullopt;
  return *end + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

bool conclude(Draft& draft) {
  const api::AttemptStatus* last = draft.newest();
  if (last == nullptr || !last->cause) return false;
  const std::string detail = last->detail.value_or("");
  const api::EndingCounters counted = draft.status.endings.value_or(api::EndingCounters{});
  const auto& restart = draft.spec.restart;
  switch (*last->cause) {
    case AttemptCause::Succeeded:
      succeed(draft, "attempt " + std::to_string(last->number) + " ran to its end on " + last->pool);
      return true;
    case AttemptCause::Deadline: fail(draft, "DeadlineExceeded", detail); return true;
    case AttemptCause::UserFailure: {
      const std::int64_t most = restart && restart->maxFailures ? *restart->maxFailures : kDefaultMaxFailures;
      if (counted.userFailures < std::max<std::int64_t>(most, 1)) return false;
      fail(draft, "TooManyFailures",
           "the trainer failed " + std::to_string(counted.userFailures) +
               " times (spec.restart.maxFailures: " + std::to_string(most) + "); last: " + detail);
      return true;
    }
    case AttemptCause::Preempted: {
      if (!restart || !restart->maxPreemptions || counted.preemptions <= *restart->maxPreemptions) return false;
      fail(draft, "TooManyPreemptions",
           "preempted " + std::to_string(counted.preemptions) + " times, spec.restart.maxPreemptions allows " +
               std::to_string(*restart->maxPreemptions) + "; last: " + detail);
      return true;
    }
    case AttemptCause::Infrastructure:
    case AttemptCause::OutOfMemory:
    case AttemptCause::PolicyEviction:
    case AttemptCause::Suspended: return false;
  }
  return false;
}

}  // namespace loadline::controller
