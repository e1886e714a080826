// Whom we trust and who we are on a TLS connection, as OpenSSL wants it told.
//
// Thread-safety: pure functions. Errors: bool; OpenSSL's error queue is left empty.
#pragma once

#include <openssl/types.h>

#include <string>

#include "kube/auth.h"

namespace loadline::kube {

/// The certificates of one moment. Replaced as a whole when a file or a plugin gives others.
struct TlsMaterial {
  std::string ca_pem;
  ClientIdentity identity;
  bool operator==(const TlsMaterial&) const = default;
};

/// Whether certificate and key can be read and belong together.
[[nodiscard]] bool is_pair(const ClientIdentity& identity);

/// Whether `pem` has at least one certificate to trust.
[[nodiscard]] bool holds_ca(const std::string& pem);

/// Applies `material` to a connection's context: only its CAs are trusted, whatever was loaded before; TLS 1.2 or
/// newer. False when the client certificate and key cannot be used.
[[nodiscard]] bool set_up_tls(SSL_CTX* context, const TlsMaterial& material);

}  // namespace loadline::kube
