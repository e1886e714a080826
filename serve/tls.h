// The certificate a server shows, replaceable while it runs: new connections get the new one, open ones go on
// with theirs.
//
// Thread-safety: all members from any thread.
// Ownership: a connection keeps the context it began with alive.
// Errors: a pair that cannot be used is refused and the one in use stays.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"

namespace boost::asio::ssl {
class context;
}

namespace loadline::serve {

class ServedCertificate {
 public:
  /// Serves this chain (leaf first) and key, both PEM, from now on. Refused when the key is not the leaf's.
  [[nodiscard]] Status replace(const std::string& chain_pem, const std::string& key_pem);
  /// The context for a new connection; null until the first replace().
  [[nodiscard]] std::shared_ptr<boost::asio::ssl::context> context() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace loadline::serve
