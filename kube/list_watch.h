// The Reflector's state machine without its thread: each step does one thing and says how long to wait before the
// next, so that tests can walk it.
//
// Thread-safety: step() and start_over() from one thread; cancel() from any.
// Ownership: Client, Store and metrics must outlive it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "kube/reflector.h"
#include "kube/watch_event.h"

namespace loadline::kube {

class ListWatch {
 public:
  enum class State {
    Empty,      ///< nothing to go on from: list, as a stream or in pages
    Streaming,  ///< a watch is telling all there is, into a copy beside the store
    Listed,     ///< the store is whole up to `version_`: watch from there
    Watching,   ///< taking in what comes
  };

  ListWatch(Client& client, Store& store, const ReflectorOptions& options, ReflectorMetrics& metrics);

  /// Lists, or opens a watch, or waits for one line of it and takes it in. Gives the time to wait before the next step.
  [[nodiscard]] std::chrono::milliseconds step(const std::stop_token& stop);
  /// Ends a step that waits for a line. The next steps must be given a stop_token that was asked to stop.
  void cancel();
  /// Trusts nothing but a new list: a step was left by an exception, and who knows where.
  void start_over();

  [[nodiscard]] State state() const { return state_; }

 private:
  std::chrono::milliseconds list(const std::stop_token& stop);
  std::chrono::milliseconds open(const std::stop_token& stop, State as);
  std::chrono::milliseconds take_in(const std::stop_token& stop);
  std::chrono::milliseconds handle_line(const std::string& line);
  std::chrono::milliseconds handle_silence(bool answered);
  std::chrono::milliseconds handle_end();
  std::chrono::milliseconds watch_failed(const ApiError& error);
  std::chrono::milliseconds trouble(const ApiError& error, State next);
  /// Counts a watch that ended; whether so many in a row brought no event that the version may be why.
  [[nodiscard]] bool fruitless_too_often();
  void take_initial(WatchEvent event);
  void take_change(WatchEvent event);
  void listed();
  void close_watch();
  void heard();

  Client& client_;
  Store& store_;
  const ReflectorOptions options_;
  ReflectorMetrics& metrics_;

  State state_ = State::Empty;
  std::string version_;
  bool streams_served_;        // until the server refuses
  bool stream_next_;           // else the next list comes in pages
  bool list_in_one_ = false;   // pages expired on the way
  int troubles_ = 0;           // in a row
  int fruitless_watches_ = 0;  // in a row, that brought no event
  Clock::Time last_trouble_;
  Clock::Time opened_at_;
  Clock::Time heard_at_;
  std::chrono::seconds watch_time_{0};
  bool heard_on_watch_ = false;
  std::map<ObjectKey, Object> initial_;  // of a streaming list

  std::mutex mutex_;  // for stream_ alone
  std::shared_ptr<WatchStream> stream_;
};

}  // namespace loadline::kube
