// Code of others (listeners, callbacks, projections) run on threads that must go on whatever it throws.
//
// Thread-safety: pure but for what is run. Errors: what() of the exception.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace loadline::kube {

/// Runs `work`. What it threw, in words; empty when it did not.
template <class Work>
[[nodiscard]] std::string fault_of(Work&& work) {
  try {
    std::forward<Work>(work)();
    return {};
  } catch (const std::exception& e) {
    return e.what()[0] == '\0' ? "an exception without words" : e.what();
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace loadline::kube
