// The webhook's own certificates: an authority that only the webhook registrations trust, and the server certificate it
// signs. Kept in a Secret that all replicas share. Here are the decisions; keeper.h carries them out.
//
// An authority lives a year, a server certificate 90 days and never longer than its authority. Each is replaced when a
// third of a server certificate's life is left to it. An authority that was replaced stays in the bundle until it ends,
// and so until the last certificate it signed has ended.
//
// Thread-safety: pure functions but for keys and serial numbers.
// Errors: a stored pair that cannot be used is a reason to make a new one, never an error.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "serve/x509.h"

namespace loadline::webhook {

inline constexpr std::chrono::hours kAuthorityLife{24 * 365};
inline constexpr std::chrono::hours kLeafLife{24 * 90};
inline constexpr std::chrono::hours kRenewBefore{24 * 30};
/// Renewal is tried each minute: what has less than this left has missed it for ten days, and somebody must look.
inline constexpr std::chrono::hours kOverdueBefore{24 * 20};

struct Certificates {
  serve::PemPair authority;
  serve::PemPair leaf;
  std::string bundle;  ///< PEM of every authority to be trusted: this one first, then older ones
};

/// The names the API server may call us by: of the Service, and the host of `url` when that is given.
[[nodiscard]] serve::HostNames server_names(const std::string& service, const std::string& ns, const std::string& url);

/// From a Secret's data; nothing when a part is missing or no base64.
[[nodiscard]] std::optional<Certificates> from_secret(const nlohmann::json& secret);
/// A Secret's `type` and `data`.
[[nodiscard]] nlohmann::json to_secret_data(const Certificates& certificates);

enum class Renewal { None, Leaf, Authority };
struct RenewalNeed {
  Renewal what = Renewal::None;
  std::string why;  ///< for the log: "the server certificate ends in 12 d"
};
[[nodiscard]] RenewalNeed renewal_need(const std::optional<Certificates>& stored, const serve::HostNames& names,
                                       TimePoint now);
/// Makes what is needed; keeps the rest, and old authorities in the bundle until they end.
[[nodiscard]] Result<Certificates> renew(const std::optional<Certificates>& stored, Renewal what,
                                         const serve::HostNames& names, TimePoint now);

/// RFC 6902 operations that make each webhook of a registration trust `bundle` besides what it trusts already, ended
/// authorities left out; empty when it does. Fails its `test` when the registration has changed meanwhile.
[[nodiscard]] nlohmann::json trust_patch(const nlohmann::json& registration, const std::string& bundle, TimePoint now);

}  // namespace loadline::webhook
