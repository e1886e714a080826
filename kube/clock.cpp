#include "kube/clock.h"

#include "kube/io_thread.h"

namespace loadline::kube {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] TimePoint wall() const override {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  }
  void wait_until(std::condition_variable& cv, std::unique_lock<std::mutex>& lock, Time until) override {
    cv.wait_until(lock, until);
  }
};

}  // namespace

bool Clock::sleep_for(Duration duration, const std::stop_token& stop) {
  about_to_wait("a sleep");
  std::mutex mutex;
  std::condition_variable cv;
  const Time until = now() + duration;
  // The callback takes the lock, so that a stop between the check and the wait is not missed.
  const std::stop_callback wake(stop, [&] {
    const std::lock_guard held(mutex);
    cv.notify_all();
  });
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && now() < until) wait_until(cv, lock, until);
  return !stop.stop_requested();
}

std::shared_ptr<Clock> system_clock() {
  static const auto clock = std::make_shared<SystemClock>();
  return clock;
}

Clock::Time FakeClock::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

TimePoint FakeClock::wall() const {
  const std::lock_guard lock(mutex_);
  return wall_;
}

void FakeClock::wait_until(std::condition_variable& cv, std::unique_lock<std::mutex>& lock, Time until) {
  if (now() < until) cv.wait_for(lock, std::chrono::milliseconds(1));
}

void FakeClock::advance(Duration by) {
  const std::lock_guard lock(mutex_);
  now_ += by;
  wall_ += std::chrono::duration_cast<std::chrono::milliseconds>(by);
}

void FakeClock::jump_wall(std::chrono::milliseconds by) {
  const std::lock_guard lock(mutex_);
  wall_ += by;
}

}  // namespace loadline::kube
