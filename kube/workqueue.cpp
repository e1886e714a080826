#include "kube/workqueue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "kube/fault.h"
#include "kube/io_thread.h"

namespace loadline::kube {

struct WorkQueue::Impl {
  explicit Impl(WorkQueueOptions the_options) : options(std::move(the_options)) {}

  // The functions below need `mutex`.

  void make_ready(const ObjectKey& key) {
    if (shutting_down || !dirty.insert(key).second) return;
    metrics.adds.add();
    ready_since.try_emplace(key, options.clock->now());
    // A key in work becomes ready again when its worker is done with it.
    if (!processing.contains(key)) ready.push_back(key);
    publish();
    changed.notify_one();
  }

  void delay(const ObjectKey& key, Clock::Time until) {
    if (shutting_down) return;
    const auto known = due.find(key);
    if (known != due.end() && known->second <= until) return;
    if (known != due.end()) by_time.erase({known->second, key});
    due[key] = until;
    by_time.emplace(until, key);
    publish();
    changed.notify_one();
  }

  void promote_due() {
    const Clock::Time now = options.clock->now();
    while (!by_time.empty() && by_time.begin()->first <= now) {
      const ObjectKey key = by_time.begin()->second;
      by_time.erase(by_time.begin());
      due.erase(key);
      make_ready(key);
    }
  }

  ObjectKey take() {
    ObjectKey key = std::move(ready.front());
    ready.pop_front();
    dirty.erase(key);
    processing.emplace(key, options.clock->now());
    if (const auto since = ready_since.find(key); since != ready_since.end()) {
      metrics.waited_us.add(microseconds_since(since->second));
      ready_since.erase(since);
    }
    metrics.taken.add();
    publish();
    return key;
  }

  std::uint64_t microseconds_since(Clock::Time then) const {
    const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(options.clock->now() - then).count();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(passed, 0));
  }

  void publish() {
    metrics.depth.set(static_cast<std::int64_t>(ready.size()));
    metrics.delayed.set(static_cast<std::int64_t>(due.size()));
    metrics.processing.set(static_cast<std::int64_t>(processing.size()));
  }

  const WorkQueueOptions options;
  QueueMetrics metrics;

  mutable std::mutex mutex;
  std::condition_variable changed;  // something to take, or shut down
  std::condition_variable idle;     // nothing in work
  std::deque<ObjectKey> ready;
  std::unordered_set<ObjectKey> dirty;                    // wants work: in `ready`, or in work and added since
  std::unordered_map<ObjectKey, Clock::Time> processing;  // with the time the work began
  std::unordered_map<ObjectKey, Clock::Time> due;         // delayed keys
  std::set<std::pair<Clock::Time, ObjectKey>> by_time;    // the same by time
  std::unordered_map<ObjectKey, Clock::Time> ready_since;
  std::unordered_map<ObjectKey, int> failures;
  bool shutting_down = false;
};

WorkQueue::WorkQueue(WorkQueueOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
WorkQueue::~WorkQueue() { shut_down(); }

void WorkQueue::add(const ObjectKey& key) {
  const std::lock_guard lock(impl_->mutex);
  impl_->make_ready(key);
}

void WorkQueue::add_after(const ObjectKey& key, std::chrono::milliseconds delay) {
  const std::lock_guard lock(impl_->mutex);
  if (delay.count() <= 0) {
    impl_->make_ready(key);
  } else {
    impl_->delay(key, impl_->options.clock->now() + delay);
  }
}

void WorkQueue::add_rate_limited(const ObjectKey& key) {
  const std::lock_guard lock(impl_->mutex);
  const int failed_before = impl_->failures[key]++;
  const int doublings = std::min(failed_before, 40);
  const double grown =
      static_cast<double>(impl_->options.first_backoff.count()) * static_cast<double>(1ULL << doublings);
  const double delay = std::min(grown, static_cast<double>(impl_->options.longest_backoff.count()));
  impl_->metrics.retries.add();
  impl_->delay(key, impl_->options.clock->now() + std::chrono::milliseconds(static_cast<std::int64_t>(delay)));
}

void WorkQueue::forget(const ObjectKey& key) {
  const std::lock_guard lock(impl_->mutex);
  impl_->failures.erase(key);
}

int WorkQueue::failures(const ObjectKey& key) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->failures.find(key);
  return found == impl_->failures.end() ? 0 : found->second;
}

std::optional<ObjectKey> WorkQueue::get() {
  about_to_wait("a worker");
  std::unique_lock lock(impl_->mutex);
  for (;;) {
    impl_->promote_due();
    if (!impl_->ready.empty()) {
      ObjectKey key = impl_->take();
      // This worker may have been the one that watched the time for the delayed keys: let another do so.
      impl_->changed.notify_one();
      return key;
    }
    if (impl_->shutting_down) return std::nullopt;
    if (impl_->by_time.empty()) {
      impl_->changed.wait(lock);
    } else {
      impl_->options.clock->wait_until(impl_->changed, lock, impl_->by_time.begin()->first);
    }
  }
}

void WorkQueue::done(const ObjectKey& key) {
  const std::lock_guard lock(impl_->mutex);
  const auto working = impl_->processing.find(key);
  if (working == impl_->processing.end()) return;
  impl_->metrics.worked_us.add(impl_->microseconds_since(working->second));
  impl_->processing.erase(working);
  if (impl_->dirty.contains(key)) {
    impl_->ready.push_back(key);
    impl_->changed.notify_one();
  }
  impl_->publish();
  if (impl_->processing.empty()) impl_->idle.notify_all();
}

void WorkQueue::shut_down() {
  const std::lock_guard lock(impl_->mutex);
  impl_->shutting_down = true;
  impl_->due.clear();
  impl_->by_time.clear();
  impl_->publish();
  impl_->changed.notify_all();
}

bool WorkQueue::shut_down_with_drain(std::chrono::milliseconds timeout) {
  shut_down();
  std::unique_lock lock(impl_->mutex);
  impl_->ready.clear();
  impl_->dirty.clear();
  impl_->publish();
  return impl_->idle.wait_for(lock, timeout, [this] { return impl_->processing.empty(); });
}

std::size_t WorkQueue::size() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->ready.size();
}

const QueueMetrics& WorkQueue::metrics() const { return impl_->metrics; }

void work_off(WorkQueue& queue, const std::function<void(const ObjectKey&)>& work,
              const std::function<void()>& on_fault) {
  while (const auto key = queue.get()) {
    const std::string fault = fault_of([&] { work(*key); });
    if (!fault.empty()) {
      spdlog::error("{}: {}", to_string(*key), fault);
      if (on_fault) on_fault();
      queue.add_rate_limited(*key);
    }
    queue.done(*key);
  }
}

}  // namespace loadline::kube
