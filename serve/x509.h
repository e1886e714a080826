// Making and reading certificates: an authority of our own, server certificates signed by it, and the questions one
// must ask of a stored pair before serving it.
//
// Thread-safety: pure functions but for random numbers and keys.
// Errors: Code::Invalid for input that cannot be read, Code::Internal when OpenSSL fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"

namespace loadline::serve {

/// A certificate and its key, PEM.
struct PemPair {
  std::string certificate;
  std::string key;
  bool operator==(const PemPair&) const = default;
};

/// What a server certificate is for: DNS names, and IP addresses in text form.
struct HostNames {
  std::vector<std::string> dns;
  std::vector<std::string> ips;
  bool operator==(const HostNames&) const = default;
};

struct Validity {
  TimePoint from;
  TimePoint until;
};

struct CertificateFacts {
  std::string subject;  ///< common name
  Validity validity;
  HostNames names;  ///< subjectAltName; IP addresses in canonical text
};

/// A self-signed authority with an EC P-256 key.
[[nodiscard]] Result<PemPair> make_authority(const std::string& common_name, Validity validity);
/// A server certificate with an EC P-256 key of its own, signed by `authority`.
[[nodiscard]] Result<PemPair> issue_server_certificate(const PemPair& authority, const HostNames& names,
                                                       Validity validity);

/// Of the first certificate in `pem`.
[[nodiscard]] Result<CertificateFacts> read_certificate(std::string_view pem);
/// Whether `facts` name every one of `wanted`, wildcards aside.
[[nodiscard]] bool covers(const CertificateFacts& facts, const HostNames& wanted);
/// Ok when the key is the leaf's and the leaf is signed by one of `authorities` (a PEM bundle), all within their
/// dates at `now`; else the reason.
[[nodiscard]] Status verify_chain(const PemPair& leaf, std::string_view authorities, TimePoint now);

/// The certificates of a PEM bundle, one string each, in order. What is no certificate is left out.
[[nodiscard]] std::vector<std::string> split_bundle(std::string_view pem);

}  // namespace loadline::serve
