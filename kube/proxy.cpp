#include "kube/proxy.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "kube/files.h"

namespace loadline::kube {
namespace {

std::optional<std::uint32_t> ipv4(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

bool in_range(const std::string& host, std::string_view range) {
  const auto slash = range.find('/');
  if (slash == std::string_view::npos) return false;
  const auto address = ipv4(host);
  const auto network = ipv4(std::string(range.substr(0, slash)));
  unsigned bits = 0;
  const std::string_view width = range.substr(slash + 1);
  const auto [end, failure] = std::from_chars(width.data(), width.data() + width.size(), bits);
  if (!address || !network || failure != std::errc() || end != width.data() + width.size() || bits > 32) return false;
  const std::uint32_t mask = bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits);
  return (*address & mask) == (*network & mask);
}

// "host:6443" of "https://user:password@host:6443/path".
std::string_view authority_of(std::string_view url) {
  if (const auto scheme = url.find("://"); scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  return url.substr(url.rfind('@') + 1);  // npos + 1 is 0
}

}  // namespace

std::string host_of(std::string_view url) {
  const std::string_view authority = authority_of(url);
  if (authority.starts_with('[')) return std::string(authority.substr(1, authority.find(']') - 1));
  return std::string(authority.substr(0, authority.find(':')));
}

std::string port_of(std::string_view url) {
  const std::string_view authority = authority_of(url);
  const auto colon = authority.rfind(':');
  const bool given = colon != std::string_view::npos && colon + 1 < authority.size() &&
                     authority.find(']', colon) == std::string_view::npos;
  if (given) return std::string(authority.substr(colon + 1));
  return url.starts_with("http:") ? "80" : "443";
}

bool bypasses_proxy(std::string_view host_text, std::string_view port, std::string_view rules) {
  const std::string host = lower_case(host_text);
  if (host == "localhost" || host == "::1" || in_range(host, "127.0.0.0/8")) return true;
  while (!rules.empty()) {
    const auto comma = rules.find(',');
    std::string rule = lower_case(trimmed(rules.substr(0, comma)));
    rules = comma == std::string_view::npos ? std::string_view() : rules.substr(comma + 1);
    if (const auto colon = rule.find(':'); colon != std::string::npos && colon == rule.rfind(':')) {
      if (std::string_view(rule).substr(colon + 1) != port) continue;
      rule.erase(colon);
    }
    if (rule.empty()) continue;
    if (rule == "*" || rule == host || in_range(host, rule)) return true;
    if (rule.front() == '*') rule.erase(0, 1);
    const std::string suffix = rule.front() == '.' ? rule : "." + rule;
    if (host.size() > suffix.size() && host.ends_with(suffix)) return true;
  }
  return false;
}

std::string proxy_from_environment(const std::string& server, const Environment& environment) {
  const auto either = [&](const char* upper, const char* lower) {
    const auto value = environment(upper);
    return value && !value->empty() ? *value : environment(lower).value_or("");
  };
  const std::string proxy =
      server.starts_with("https:") ? either("HTTPS_PROXY", "https_proxy") : either("HTTP_PROXY", "http_proxy");
  if (proxy.empty() || bypasses_proxy(host_of(server), port_of(server), either("NO_PROXY", "no_proxy"))) return "";
  return proxy.find("://") == std::string::npos ? "http://" + proxy : proxy;
}

}  // namespace loadline::kube
