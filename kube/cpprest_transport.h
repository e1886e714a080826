// Transport over cpprestsdk's http_client. Only it and cpprest_threads.cpp see cpprestsdk.
//
// Thread-safety: as Transport. Ownership: keeps the configuration and its credentials.
#pragma once

#include <memory>

#include "kube/config.h"
#include "kube/transport.h"

namespace loadline::kube {

/// Call first in main, before any thread: hides the system's CA files from OpenSSL (only the cluster's CA is
/// trusted, and loading the system's costs 22 ms per connection) and starts the two I/O threads. Idempotent.
void start_transport_io();

/// Errors: Code::Invalid for an address, certificate or key that cannot be used, with the reason.
[[nodiscard]] Result<std::shared_ptr<Transport>> make_cpprest_transport(const ClusterConfig& config);

}  // namespace loadline::kube
