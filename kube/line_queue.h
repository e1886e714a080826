// From a watch's bytes to whole lines, between the I/O thread that receives and the thread that reads.
// Bounded: a full queue tells the writer to wait, which stops the reading of the socket, which stops the server.
//
// Thread-safety: one writer, one reader, close() from anywhere.
// Errors: as WatchRead.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "kube/transport.h"

namespace loadline::kube {

class LineQueue {
 public:
  struct Limits {
    std::size_t bytes = 4UL * 1024 * 1024;        ///< waiting for the reader; then the writer pauses until half is read
    std::size_t line_bytes = 64UL * 1024 * 1024;  ///< a longer line fails the stream
    /// A stream without a status fails then. A server that can watch says so at once, however long it is silent after.
    std::chrono::milliseconds status = std::chrono::seconds(30);
  };
  LineQueue() : LineQueue(Limits{}) {}
  explicit LineQueue(Limits limits) : limits_(limits), status_due_(std::chrono::steady_clock::now() + limits.status) {}

  /// Takes in bytes. `resume` is called once when the next write is welcome: from within write() when there is room,
  /// else later by the reader or close(), under no lock.
  void write(std::string_view bytes, std::function<void()> resume);
  /// The answer's status. Bytes wait until it is known; those of a status other than 200 are the error's body.
  void set_status(int status, std::optional<std::chrono::seconds> retry_after);
  /// No more bytes. `failure` unset: a clean end. A partial last line is dropped.
  void finish(std::optional<ApiError> failure);

  [[nodiscard]] WatchRead read(std::chrono::milliseconds wait);
  /// Ends it for both sides: pending writers resume, a waiting reader gets End.
  void close();

 private:
  void split(std::string_view bytes);       // under mutex_
  [[nodiscard]] WatchRead outcome() const;  // under mutex_
  void fail_without_status();               // under mutex_
  [[nodiscard]] std::function<void()> take_resume_if_room();

  const Limits limits_;
  const std::chrono::steady_clock::time_point status_due_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  std::size_t queued_bytes_ = 0;
  std::string partial_;  // of a line, or all of an error body
  std::string early_;    // came before the status
  std::function<void()> resume_;
  int status_ = 0;
  std::optional<std::chrono::seconds> retry_after_;
  bool finished_ = false;
  bool closed_ = false;
  std::optional<ApiError> failure_;
};

}  // namespace loadline::kube
