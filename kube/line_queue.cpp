#include "kube/line_queue.h"

#include <algorithm>

#include "kube/io_thread.h"

namespace loadline::kube {
namespace {

constexpr std::size_t kErrorBodyBytes = 64UL * 1024;

}  // namespace

void LineQueue::split(std::string_view bytes) {
  if (status_ != 200) {
    partial_.append(bytes.substr(0, kErrorBodyBytes - std::min(kErrorBodyBytes, partial_.size())));
    return;
  }
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    if (partial_.size() + std::min(end, bytes.size()) > limits_.line_bytes) {
      failure_ = ApiError::transport(ApiError::kBadAnswer, "a watch event is larger than any object can be");
      finished_ = true;
      return;
    }
    partial_.append(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (!partial_.empty() && partial_.back() == '\r') partial_.pop_back();
    if (partial_.empty()) continue;
    queued_bytes_ += partial_.size();
    lines_.push_back(std::move(partial_));
    partial_.clear();
  }
}

std::function<void()> LineQueue::take_resume_if_room() {
  const bool room = closed_ || finished_ || (status_ != 0 && queued_bytes_ <= limits_.bytes / 2);
  return room ? std::exchange(resume_, nullptr) : nullptr;
}

void LineQueue::write(std::string_view bytes, std::function<void()> resume) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_ && !finished_) {
      if (status_ == 0) {
        early_.append(bytes);
      } else {
        split(bytes);
      }
    }
    const bool wait = !closed_ && !finished_ && (status_ == 0 || queued_bytes_ > limits_.bytes);
    if (wait) resume_ = std::exchange(resume, nullptr);
    changed_.notify_all();
  }
  if (resume) resume();
}

void LineQueue::set_status(int status, std::optional<std::chrono::seconds> retry_after) {
  std::function<void()> resume;
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;  // too late: the reader may know of the failure
    status_ = status;
    retry_after_ = retry_after;
    split(std::exchange(early_, {}));
    resume = take_resume_if_room();
    changed_.notify_all();
  }
  if (resume) resume();
}

void LineQueue::finish(std::optional<ApiError> failure) {
  std::function<void()> resume;
  {
    const std::lock_guard lock(mutex_);
    if (!finished_) failure_ = std::move(failure);
    finished_ = true;
    resume = take_resume_if_room();
    changed_.notify_all();
  }
  if (resume) resume();
}

void LineQueue::fail_without_status() {
  finished_ = true;
  failure_ = ApiError::transport(ApiError::kTimeout, "the server did not begin to answer the watch within " +
                                                         std::to_string(limits_.status.count() / 1000) + " s");
}

WatchRead LineQueue::outcome() const {
  if (closed_) return {WatchRead::Kind::End, {}, {}};
  // An answer that is an error is reported as such, also when its connection broke afterwards.
  if (status_ != 0 && status_ != 200) {
    return {WatchRead::Kind::Failed, {}, ApiError::from_response(status_, partial_, retry_after_)};
  }
  if (failure_) return {WatchRead::Kind::Failed, {}, *failure_};
  return {WatchRead::Kind::End, {}, {}};
}

WatchRead LineQueue::read(std::chrono::milliseconds wait) {
  about_to_wait("reading a watch");
  std::function<void()> resume;
  WatchRead result;
  {
    std::unique_lock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + wait;
    const auto something = [&] { return closed_ || finished_ || !lines_.empty(); };
    changed_.wait_until(lock, std::min(until, status_due_), [&] { return something() || status_ != 0; });
    if (status_ == 0 && !something() && std::chrono::steady_clock::now() >= status_due_) fail_without_status();
    if (!changed_.wait_until(lock, until, something)) {
      return {WatchRead::Kind::Timeout, {}, {}, /*answered=*/status_ != 0};
    }
    if (closed_ || lines_.empty()) {
      result = outcome();
    } else {
      result = {WatchRead::Kind::Line, std::move(lines_.front()), {}};
      lines_.pop_front();
      queued_bytes_ -= result.line.size();
    }
    resume = take_resume_if_room();
  }
  if (resume) resume();
  return result;
}

void LineQueue::close() {
  std::function<void()> resume;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    lines_.clear();
    queued_bytes_ = 0;
    resume = take_resume_if_room();
    changed_.notify_all();
  }
  if (resume) resume();
}

}  // namespace loadline::kube
