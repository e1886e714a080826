// When to send a request again and how long to wait first: data, and one pure function over it.
//
// Thread-safety: pure functions; TokenBucket may be used from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "kube/clock.h"
#include "kube/error.h"

namespace loadline::kube {

struct RetryPolicy {
  int max_tries = 1;
  bool connection_errors = false;  ///< no answer came: only right when sending twice does no harm
  bool server_errors = false;      ///< 5xx without Retry-After; those with one are always tried again
  std::chrono::milliseconds first_wait{200};
  std::chrono::milliseconds longest_wait{10'000};
};

/// Reads may be repeated freely.
inline constexpr RetryPolicy kReadRetries{6, true, true, std::chrono::milliseconds(200), std::chrono::seconds(10)};
/// Writes only when the server said it did not carry them out: 429, or 5xx with Retry-After. The count of ten is
/// client-go's (rest/with_retry.go).
inline constexpr RetryPolicy kWriteRetries{10, false, false, std::chrono::milliseconds(200), std::chrono::seconds(10)};

/// How long to wait before try number `tries_made` + 1, or nothing when the error is final. `random` is in [0, 1).
/// Retry-After is a floor, with up to a second of jitter on top so that a refused crowd does not come back as one.
[[nodiscard]] std::optional<std::chrono::milliseconds> retry_wait(const RetryPolicy& policy, const ApiError& error,
                                                                  int tries_made, double random);

/// Full jitter: anything between half and the whole of first * 2^n, capped at `longest`. `random` is in [0, 1).
[[nodiscard]] std::chrono::milliseconds backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest,
                                                int n, double random);

/// A number in [0, 1), fresh on each call; per-thread generator.
[[nodiscard]] double random_unit();

/// At most `rate` passes a second after a burst. A rate of 0 lets everything pass.
class TokenBucket {
 public:
  TokenBucket(double rate, int burst, std::shared_ptr<Clock> clock);
  /// Takes a token now and says how long its holder must wait before using it; 0 when it was there.
  [[nodiscard]] Clock::Duration reserve();

 private:
  const double rate_;
  const double burst_;
  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  double tokens_;
  Clock::Time last_;
};

}  // namespace loadline::kube
