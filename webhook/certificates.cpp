#include "webhook/certificates.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "kube/json_read.h"
#include "webhook/base64.h"

namespace loadline::webhook {
namespace {

using nlohmann::json;

/// Authorities kept in a bundle: each belongs to one that was replaced or whose Secret was deleted, so there are few.
constexpr std::size_t kMostAuthorities = 8;
/// Clocks of API server and webhook differ a little.
constexpr std::chrono::hours kBackdated{1};

std::optional<std::string> data_of(const json& secret, std::string_view key) {
  const auto text = kube::string_at(secret, {"data", key});
  return text ? base64_decode(*text) : std::nullopt;
}

bool ended(const std::string& certificate, TimePoint now) {
  const auto facts = serve::read_certificate(certificate);
  return !facts || facts->validity.until <= now;
}

/// `first` and then what of `rest` has not ended, each once.
std::string merge_bundles(const std::string& first, const std::string& rest, TimePoint now) {
  std::vector<std::string> all;
  for (const std::string& certificate : serve::split_bundle(first + "\n" + rest)) {
    if (all.size() < kMostAuthorities && !ended(certificate, now) &&
        std::find(all.begin(), all.end(), certificate) == all.end()) {
      all.push_back(certificate);
    }
  }
  return join(all, "");
}

std::string days_left(TimePoint until, TimePoint now) {
  return duration_text(std::chrono::duration<double>(until - now).count());
}

std::optional<std::string> authority_problem(const Certificates& stored, TimePoint now) {
  const auto facts = serve::read_certificate(stored.authority.certificate);
  if (!facts) return "the stored authority cannot be read";
  if (const auto chain = serve::verify_chain(stored.authority, stored.authority.certificate, now); !chain) {
    return "the stored authority cannot be used: " + chain.error().message;
  }
  if (facts->validity.until - now < kLeafLife + kRenewBefore) {
    return "the authority ends in " + days_left(facts->validity.until, now);
  }
  return std::nullopt;
}

std::optional<std::string> leaf_problem(const Certificates& stored, const serve::HostNames& names, TimePoint now) {
  const auto facts = serve::read_certificate(stored.leaf.certificate);
  if (!facts) return "the stored server certificate cannot be read";
  if (const auto chain = serve::verify_chain(stored.leaf, stored.authority.certificate, now); !chain) {
    return "the stored server certificate cannot be used: " + chain.error().message;
  }
  if (!serve::covers(*facts, names)) return "the server certificate does not name every host the webhook is called by";
  if (facts->validity.until - now < kRenewBefore) {
    return "the server certificate ends in " + days_left(facts->validity.until, now);
  }
  return std::nullopt;
}

bool is_address(const std::string& host) {
  return host.find(':') != std::string::npos ||
         std::all_of(host.begin(), host.end(), [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

/// "https://[::1]:9443/x" gives "::1".
std::string host_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) return {};
  std::string authority = url.substr(scheme + 3);
  authority.resize(std::min(authority.find('/'), authority.size()));
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

}  // namespace

serve::HostNames server_names(const std::string& service, const std::string& ns, const std::string& url) {
  const std::string name = service + "." + ns + ".svc";
  serve::HostNames names{{name, name + ".cluster.local"}, {}};
  if (const std::string host = host_of(url); !host.empty()) {
    (is_address(host) ? names.ips : names.dns).push_back(host);
  }
  return names;
}

std::optional<Certificates> from_secret(const json& secret) {
  const auto certificate = data_of(secret, "tls.crt");
  const auto key = data_of(secret, "tls.key");
  const auto bundle = data_of(secret, "ca.crt");
  const auto authority_key = data_of(secret, "ca.key");
  if (!certificate || !key || !bundle || !authority_key) return std::nullopt;
  const std::vector<std::string> authorities = serve::split_bundle(*bundle);
  if (authorities.empty()) return std::nullopt;
  return Certificates{{authorities.front(), *authority_key}, {*certificate, *key}, *bundle};
}

json to_secret_data(const Certificates& certificates) {
  return {{"type", "kubernetes.io/tls"},
          {"data",
           {{"tls.crt", base64_encode(certificates.leaf.certificate)},
            {"tls.key", base64_encode(certificates.leaf.key)},
            {"ca.crt", base64_encode(certificates.bundle)},
            {"ca.key", base64_encode(certificates.authority.key)}}}};
}

RenewalNeed renewal_need(const std::optional<Certificates>& stored, const serve::HostNames& names, TimePoint now) {
  if (!stored) return {Renewal::Authority, "no certificate is stored"};
  if (auto problem = authority_problem(*stored, now)) return {Renewal::Authority, *problem};
  if (auto problem = leaf_problem(*stored, names, now)) return {Renewal::Leaf, *problem};
  return {};
}

Result<Certificates> renew(const std::optional<Certificates>& stored, Renewal what, const serve::HostNames& names,
                           TimePoint now) {
  Certificates fresh = stored.value_or(Certificates{});
  const TimePoint from = now - kBackdated;
  if (what == Renewal::Authority) {
    auto authority = serve::make_authority("loadline-webhook " + rfc3339(now), {from, now + kAuthorityLife});
    if (!authority) return authority.error();
    fresh.authority = *authority;
  }
  fresh.bundle = merge_bundles(fresh.authority.certificate, fresh.bundle, now);
  auto leaf = serve::issue_server_certificate(fresh.authority, names, {from, now + kLeafLife});
  if (!leaf) return leaf.error();
  fresh.leaf = *leaf;
  return fresh;
}

json trust_patch(const json& registration, const std::string& bundle, TimePoint now) {
  json patch = json::array();
  const json& webhooks = kube::array_at(registration, {"webhooks"});
  for (std::size_t i = 0; i < webhooks.size(); ++i) {
    const auto trusted = kube::string_at(webhooks[i], {"clientConfig", "caBundle"});
    const std::string before = trusted ? base64_decode(*trusted).value_or("") : "";
    const std::string after = merge_bundles(bundle, before, now);
    if (before == after) continue;
    const std::string path = "/webhooks/" + std::to_string(i) + "/clientConfig/caBundle";
    patch.push_back({{"op", "add"}, {"path", path}, {"value", base64_encode(after)}});
  }
  if (patch.empty()) return patch;
  const auto version = kube::string_at(registration, {"metadata", "resourceVersion"});
  patch.insert(patch.begin(), json{{"op", "test"},
                                   {"path", "/metadata/resourceVersion"},
                                   {"value", std::string(version.value_or(std::string_view()))}});
  return patch;
}

}  // namespace loadline::webhook
