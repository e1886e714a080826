// SIGTERM and SIGINT as something the main thread waits for, so that no code of ours runs inside a signal handler.
//
//   const EndSignals signals;                       // before any thread is made
//   while (!signals.wait_for(std::chrono::seconds(1))) look_after_things();
//
// Thread-safety: constructed and waited on by one thread, before any other is made: the block is inherited.
// Ownership: blocks both signals for as long as it lives. SIGPIPE stays ignored for good: a peer that hangs up is an
// error of that write and no reason to end.
// Errors: none.
#pragma once

#include <chrono>
#include <csignal>

namespace loadline::serve {

class EndSignals {
 public:
  EndSignals();
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  /// Takes one signal that asks the process to end, waiting for it at most so long; false when none came.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds wait) const;

 private:
  sigset_t ends_;
  sigset_t before_;
};

}  // namespace loadline::serve
