// What the server refused, told to whoever renews it without waiting for it: the one who tells is an I/O thread,
// the one who renews may be reading a file or running a program.
//
// Thread-safety: all members from any thread.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "kube/auth.h"

namespace loadline::kube {

class Refusals {
 public:
  void add(const Credentials& refused) {
    const std::lock_guard lock(mutex_);
    refused_ = refused;
  }
  /// Whether `held` was refused since it was last asked; an older credential that was is no matter.
  bool take(const Credentials& held) {
    const std::lock_guard lock(mutex_);
    return std::exchange(refused_, std::nullopt) == held;
  }

 private:
  std::mutex mutex_;
  std::optional<Credentials> refused_;
};

}  // namespace loadline::kube
