// Who we are to the API server: a bearer token that may change under us, a client certificate, or both.
//
// Thread-safety: all members may be called from any thread.
// Errors: values. A file that cannot be read again leaves its last good value standing.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/clock.h"

namespace loadline::kube {

/// A client certificate and its key, PEM. Both empty when there is none.
struct ClientIdentity {
  std::string certificate_pem = {};
  std::string key_pem = {};
  bool operator==(const ClientIdentity&) const = default;
};

struct Credentials {
  std::string authorization = {};  ///< value of the Authorization header; empty for none
  ClientIdentity identity = {};
  bool operator==(const Credentials&) const = default;
};

/// How long one caller waits for credentials, in the machine's own time. Another may wait longer for the same.
struct Patience {
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  std::stop_token stop = {};
};

class AuthSource {
 public:
  virtual ~AuthSource() = default;
  /// What to send now. May read a file or run a program, at most one at a time: an error when that takes longer than
  /// `patience`, though it goes on for the next to ask.
  [[nodiscard]] virtual Result<Credentials> credentials(const Patience& patience) = 0;
  /// The same with all the patience of the world.
  [[nodiscard]] Result<Credentials> credentials() { return credentials(Patience{}); }
  /// The server said 401 to `what`. The next credentials() fetches anew unless it has others by now. Never waits.
  virtual void refused(const Credentials& what) = 0;
};

/// Credentials that never change: token, user and password, certificate, or nothing.
[[nodiscard]] std::shared_ptr<AuthSource> static_auth(Credentials credentials);

/// Files that are rotated on disk: a service account's token, a certificate and its key. Empty paths for what there is
/// not; certificate and key go together.
struct CredentialFiles {
  std::string token = {};
  std::string certificate = {};
  std::string key = {};
};

/// `given`, with what `files` hold in its place: read again after 60 s and after a 401. While a file cannot be read, or
/// a certificate does not belong to its key (one of the two is not replaced yet), the last good value stays.
[[nodiscard]] std::shared_ptr<AuthSource> file_auth(CredentialFiles files, Credentials given,
                                                    std::shared_ptr<Clock> clock);

/// A kubeconfig `exec` plugin (client.authentication.k8s.io/v1 and v1beta1).
struct ExecPlugin {
  std::string api_version;
  std::string command;  ///< resolved; a bare name is looked up in PATH
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  ///< added to ours
  std::string install_hint;                ///< shown when the command is missing
  std::string cluster_info_json;           ///< for provideClusterInfo: the `cluster` of the ExecCredential's spec
  std::chrono::seconds timeout{60};        ///< the plugin is killed after this
};

/// Runs the plugin when there is no credential, when it ends within 10 s, and after a 401; after a failure or a refusal
/// at most every 5 s, the last outcome standing meanwhile.
[[nodiscard]] std::shared_ptr<AuthSource> exec_auth(ExecPlugin plugin, std::shared_ptr<Clock> clock);

}  // namespace loadline::kube
