#include "kube/io_thread.h"

#include <cstdio>
#include <cstdlib>

namespace loadline::kube {
namespace {

thread_local bool marked = false;

}  // namespace

void mark_io_thread() noexcept { marked = true; }
bool on_io_thread() noexcept { return marked; }

void about_to_wait([[maybe_unused]] const char* what) noexcept {
#ifndef NDEBUG
  if (!marked) return;
  // Not the log: its locks may be what this thread is in the way of.
  std::fprintf(stderr, "%s would wait on an I/O thread, and every request and watch behind it\n", what);
  std::abort();
#endif
}

}  // namespace loadline::kube
