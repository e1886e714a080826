// Keeps the webhook's certificates: reads the shared Secret or makes it, makes the registrations trust what will be
// served, and serves it a round later. Every replica does the same rounds: whoever writes first wins, and the others
// take over what is stored.
//
// Thread-safety: round() from one thread; the getters from any, so `now` must be callable from any too.
// Ownership: client and certificate must outlive it.
// Errors: a round that fails leaves what is served as it is.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "kube/client.h"
#include "serve/tls.h"
#include "webhook/certificates.h"

namespace loadline::webhook {

struct KeeperOptions {
  std::string ns, secret;    ///< where the pair is kept
  std::string registration;  ///< name of both webhook configurations
  serve::HostNames names;
  std::function<TimePoint()> now;
  /// Told at each round that fails while what is served nears its end, in words for the cluster's administrator.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

class CertificateKeeper {
 public:
  CertificateKeeper(kube::Client& client, serve::ServedCertificate& served, KeeperOptions options)
      : client_(client), served_(served), options_(std::move(options)) {}

  /// One round; call it at boot until it succeeds, and then each minute.
  [[nodiscard]] Status round();

  /// Whether what is served nears its end and should have been renewed long ago. False while nothing is served.
  [[nodiscard]] bool overdue() const;
  [[nodiscard]] bool serving() const { return leaf_ends_ != 0; }
  /// Unix seconds; 0 before the first good round.
  [[nodiscard]] std::int64_t leaf_ends() const { return leaf_ends_; }
  [[nodiscard]] std::int64_t authority_ends() const { return authority_ends_; }

 private:
  [[nodiscard]] Status renew_and_serve();
  [[nodiscard]] Result<Certificates> stored_or_made();
  [[nodiscard]] Status store(const Certificates& certificates, const kube::Object& before);
  [[nodiscard]] Status publish(const std::string& bundle);
  [[nodiscard]] Status publish_in(const kube::Resource& resource, const std::string& bundle);
  [[nodiscard]] bool can_wait(const Certificates& certificates);
  [[nodiscard]] Status serve(const Certificates& certificates);

  kube::Client& client_;
  serve::ServedCertificate& served_;
  const KeeperOptions options_;
  std::string served_leaf_;
  std::string next_leaf_;  ///< trusted, and to be served from the next round on
  std::atomic<std::int64_t> leaf_ends_{0};
  std::atomic<std::int64_t> authority_ends_{0};
};

}  // namespace loadline::webhook
