// Keys waiting to be worked on. A key is in the queue once however often it is added; it is never given to two
// workers at a time; one added while it is worked on is given out once more after done().
//
//   work_off(queue, [&](const ObjectKey& key) {
//     if (reconcile(key)) queue.forget(key); else queue.add_rate_limited(key);
//   });
//
// Thread-safety: all members from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "kube/clock.h"
#include "kube/metrics.h"
#include "kube/object.h"

namespace loadline::kube {

struct WorkQueueOptions {
  std::chrono::milliseconds first_backoff{5};
  std::chrono::milliseconds longest_backoff{300'000};
  std::shared_ptr<Clock> clock = system_clock();
};

class WorkQueue {
 public:
  explicit WorkQueue(WorkQueueOptions options = {});
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Makes `key` ready now.
  void add(const ObjectKey& key);
  /// Makes `key` ready after `delay`. Of two delays for a key the earlier time counts; a plain add() meanwhile
  /// leaves it standing.
  void add_after(const ObjectKey& key, std::chrono::milliseconds delay);
  /// add_after with a delay that doubles with each call for this key until forget().
  void add_rate_limited(const ObjectKey& key);
  /// The key's next failure starts from the first delay again.
  void forget(const ObjectKey& key);
  /// Calls of add_rate_limited for this key since forget().
  [[nodiscard]] int failures(const ObjectKey& key) const;

  /// Waits for a key. Nothing once the queue is shut down and empty.
  [[nodiscard]] std::optional<ObjectKey> get();
  /// Ends the work on a key that get() gave out.
  void done(const ObjectKey& key);

  /// Takes no more keys and drops delayed ones; those ready are still given out.
  void shut_down();
  /// shut_down() that also drops ready keys and waits until every worker called done(), at most `timeout`.
  /// True when all did.
  bool shut_down_with_drain(std::chrono::milliseconds timeout);

  [[nodiscard]] std::size_t size() const;  ///< ready keys
  [[nodiscard]] const QueueMetrics& metrics() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One worker: gives each key to `work` until the queue is shut down and empty. When `work` throws, that is logged and
/// `on_fault` called, the key comes again, later each time, and the worker goes on.
void work_off(WorkQueue& queue, const std::function<void(const ObjectKey&)>& work,
              const std::function<void()>& on_fault = {});

}  // namespace loadline::kube
