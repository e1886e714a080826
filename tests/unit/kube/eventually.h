// Waiting for another thread, without a deadline that a busy machine would miss.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace loadline::kube {

/// Whether `condition` came to hold; gives up after 30 s.
inline bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

}  // namespace loadline::kube
