// The threads that carry all requests and watches. They only move bytes: one that waits stops every answer, the
// one it waits for among them.
//
// Thread-safety: all functions from any thread; each speaks of the thread it is called on.
#pragma once

namespace loadline::kube {

/// Marks the calling thread, until it ends.
void mark_io_thread() noexcept;
[[nodiscard]] bool on_io_thread() noexcept;

/// Called by whatever may wait, with its name. In a debug build an I/O thread that comes here ends the process.
void about_to_wait(const char* what) noexcept;

}  // namespace loadline::kube
