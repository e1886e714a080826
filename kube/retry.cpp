#include "kube/retry.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace loadline::kube {

using std::chrono::milliseconds;

std::optional<milliseconds> retry_wait(const RetryPolicy& policy, const ApiError& error, int tries_made,
                                       double random) {
  if (tries_made >= policy.max_tries) return std::nullopt;
  const bool refused = error.http_status == 429 || (error.http_status >= 500 && error.retry_after);
  const bool no_answer = error.http_status == 0 && error.transient;
  const bool again =
      refused || (no_answer && policy.connection_errors) || (error.http_status >= 500 && policy.server_errors);
  if (!again) return std::nullopt;
  const milliseconds wait = backoff(policy.first_wait, policy.longest_wait, tries_made - 1, random);
  if (!error.retry_after) return wait;
  return std::chrono::duration_cast<milliseconds>(*error.retry_after) + milliseconds(static_cast<int>(1000 * random));
}

milliseconds backoff(milliseconds first, milliseconds longest, int n, double random) {
  const double grown = static_cast<double>(first.count()) * std::pow(2.0, std::clamp(n, 0, 40));
  const double capped = std::min(grown, static_cast<double>(longest.count()));
  return milliseconds(static_cast<std::int64_t>(capped * (0.5 + 0.5 * random)));
}

double random_unit() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.0, 1.0)(generator);
}

TokenBucket::TokenBucket(double rate, int burst, std::shared_ptr<Clock> clock)
    : rate_(rate), burst_(std::max(1, burst)), clock_(std::move(clock)), tokens_(burst_), last_(clock_->now()) {}

Clock::Duration TokenBucket::reserve() {
  if (rate_ <= 0) return Clock::Duration::zero();
  const std::lock_guard lock(mutex_);
  const Clock::Time now = clock_->now();
  tokens_ = std::min(burst_, tokens_ + rate_ * std::chrono::duration<double>(now - last_).count());
  last_ = now;
  tokens_ -= 1;
  if (tokens_ >= 0) return Clock::Duration::zero();
  return std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(-tokens_ / rate_));
}

}  // namespace loadline::kube
