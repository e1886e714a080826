// A few threads and a short queue. Full is said at once, so that a burst costs its senders a retry and not
// everybody a wait.
//
// Thread-safety: all members from any thread but stop(), which must not come from a task.
// Errors: a task that throws is logged; the thread goes on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace loadline::serve {

class BoundedExecutor {
 public:
  using Task = std::function<void()>;

  /// `threads` >= 1; `waiting`: tasks that may wait for a thread.
  BoundedExecutor(std::size_t threads, std::size_t waiting);
  ~BoundedExecutor();
  BoundedExecutor(const BoundedExecutor&) = delete;
  BoundedExecutor& operator=(const BoundedExecutor&) = delete;

  /// Queues `task`; false when there is no room or the executor has stopped.
  [[nodiscard]] bool try_run(Task task);
  /// Drops tasks that wait, and waits for those that run.
  void stop();

 private:
  void work();

  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  std::size_t idle_;  ///< threads that run no task
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace loadline::serve
