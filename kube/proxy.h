// Which proxy, if any, lies between us and a server: the environment's rules as Go programs read them.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "kube/config.h"

namespace loadline::kube {

/// Whether NO_PROXY-style `rules` ("localhost,.svc,10.0.0.0/8,api.example.com:6443,*") name `host`, a rule with a port
/// only at that `port`. Case does not matter. Loopback is never proxied.
[[nodiscard]] bool bypasses_proxy(std::string_view host, std::string_view port, std::string_view rules);
/// HTTPS_PROXY (or HTTP_PROXY for http servers) in either case, unless NO_PROXY names the host; empty for none.
[[nodiscard]] std::string proxy_from_environment(const std::string& server, const Environment& environment);
/// "host" of "https://host:6443/path"; an IPv6 host without its brackets.
[[nodiscard]] std::string host_of(std::string_view url);
/// "6443" of the same; without one "443", or "80" for http.
[[nodiscard]] std::string port_of(std::string_view url);

}  // namespace loadline::kube
