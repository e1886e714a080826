// The system's CA files: hidden from OpenSSL in this process, but not from the programs that it starts.
//
// Thread-safety: hide_system_cas() changes the environment, so it comes before any thread; the other from any thread
// after it. Errors: none.
#pragma once

#include <map>
#include <string>

namespace loadline::kube {

/// From now on OpenSSL finds no CA by itself. It would read the system's for every context otherwise.
void hide_system_cas();
/// Puts what was hidden back into `environment`, which began as a copy of ours: a program that we start may speak TLS
/// with others than the API server. No change when nothing is hidden.
void show_system_cas(std::map<std::string, std::string>& environment);

}  // namespace loadline::kube
