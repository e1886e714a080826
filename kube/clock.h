// Time as a dependency, so that tests own it: back-off, leases and queues run on a FakeClock in
// milliseconds and without sleeping.
//
// Thread-safety: all members may be called from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>

#include "base/text.h"

namespace loadline::kube {

class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  virtual ~Clock() = default;

  /// Time for intervals; never jumps.
  [[nodiscard]] virtual Time now() const = 0;
  /// Time for people and for objects; may jump.
  [[nodiscard]] virtual TimePoint wall() const = 0;
  /// Waits on `cv` until notified, or `until`, or for no reason: callers loop over their condition.
  virtual void wait_until(std::condition_variable& cv, std::unique_lock<std::mutex>& lock, Time until) = 0;

  /// Sleeps for `duration`; false when `stop` was asked for first.
  bool sleep_for(Duration duration, const std::stop_token& stop);
};

/// The machine's clock.
[[nodiscard]] std::shared_ptr<Clock> system_clock();

/// A clock that stands until told to move. Waiters notice within about a millisecond of real time.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override;
  [[nodiscard]] TimePoint wall() const override;
  void wait_until(std::condition_variable& cv, std::unique_lock<std::mutex>& lock, Time until) override;

  void advance(Duration by);
  /// Moves only the wall clock, as an administrator or NTP would.
  void jump_wall(std::chrono::milliseconds by);

 private:
  mutable std::mutex mutex_;
  Time now_{std::chrono::hours(1)};
  TimePoint wall_{std::chrono::sys_days(std::chrono::year(2026) / 11 / 30)};
};

}  // namespace loadline::kube
