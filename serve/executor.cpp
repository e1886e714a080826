#include "serve/executor.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

namespace loadline::serve {

BoundedExecutor::BoundedExecutor(std::size_t threads, std::size_t waiting) : limit_(waiting), idle_(threads) {
  threads_.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

BoundedExecutor::~BoundedExecutor() { stop(); }

bool BoundedExecutor::try_run(Task task) {
  {
    const std::lock_guard lock(mutex_);
    // An idle thread has yet to take what was queued for it: those tasks wait for nobody.
    if (stopped_ || queue_.size() >= limit_ + idle_) return false;
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void BoundedExecutor::stop() {
  std::deque<Task> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(queue_);
  }
  wake_.notify_all();
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void BoundedExecutor::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
    if (stopped_) return;
    --idle_;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    try {
      task();
    } catch (const std::exception& fault) {
      spdlog::error("a task failed: {}", fault.what());
    } catch (...) {
      spdlog::error("a task failed with an unknown exception");
    }
    task = nullptr;
    lock.lock();
    ++idle_;
  }
}

}  // namespace loadline::serve
