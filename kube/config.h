// Where the API server is, whom to trust and who we are: from kubeconfig files or from inside a pod.
// Same rules as kubectl:
//   - an explicit path is used alone and must exist; else $KUBECONFIG, a ':' list of files merged so that the
//     first to set a value wins (missing ones are skipped); else ~/.kube/config; else in-cluster.
//   - relative paths in a file are relative to that file; *-data wins over the path of the same thing.
//   - of several credentials in one user: tokenFile wins over token; a token, password or certificate wins over exec.
//   - a proxy is the cluster's proxy-url, else HTTPS_PROXY unless NO_PROXY names the host.
//
// Thread-safety: pure but for reading files and the environment given.
// Errors: Code::Invalid with the file and the field; Code::NotFound when there is no configuration at all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/auth.h"

namespace loadline::kube {

struct ClusterConfig {
  std::string server;                ///< "https://host:port[/path]", no trailing slash
  std::string ca_pem;                ///< empty: nothing is trusted, unless insecure
  std::string ca_file;               ///< where ca_pem came from when it may be rotated; else empty
  std::string tls_server_name;       ///< name the server's certificate must have, when not the one in `server`
  bool insecure = false;             ///< insecure-skip-tls-verify
  std::string proxy_url;             ///< "http://proxy:3128"; empty for none
  std::string ns = "default";        ///< the context's namespace
  std::string context;               ///< the context's name; "in-cluster" inside a pod
  std::shared_ptr<AuthSource> auth;  ///< never null
  std::vector<std::pair<std::string, std::string>> headers;  ///< sent with each request: impersonation
};

/// Reads an environment variable; tests give their own.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
[[nodiscard]] Environment process_environment();

struct ConfigOptions {
  std::string kubeconfig = {};  ///< --kubeconfig; empty: by the rules above
  std::string context = {};     ///< --context; empty: current-context
  Environment environment = process_environment();
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::shared_ptr<Clock> clock = system_clock();
};

/// By the rules above.
[[nodiscard]] Result<ClusterConfig> load_config(const ConfigOptions& options = {});
/// Only from kubeconfig files.
[[nodiscard]] Result<ClusterConfig> kubeconfig(const ConfigOptions& options = {});
/// Only from the pod's service account.
[[nodiscard]] Result<ClusterConfig> in_cluster_config(const ConfigOptions& options = {});

}  // namespace loadline::kube
