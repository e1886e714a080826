#include "kube/config.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kube/files.h"
#include "kube/json_read.h"
#include "kube/kubeconfig.h"
#include "kube/proxy.h"

namespace loadline::kube {
namespace {

Error invalid(const std::string& where, const std::string& field, const std::string& what) {
  return Error::make(Error::Code::Invalid, where + ": " + field + ": " + what);
}

// Inline data (base64) wins over a file of the same thing; neither gives "".
Result<std::string> data_or_file(const KubeconfigEntry& entry, const char* data_field, const char* file_field) {
  if (const std::string data = entry.text(data_field); !data.empty()) {
    Result<std::string> bytes = decode_base64(data);
    if (!bytes) return invalid(entry.file, data_field, bytes.error().message);
    return bytes;
  }
  const std::string path = resolve_path(entry.folder(), entry.text(file_field));
  if (path.empty()) return std::string();
  Result<std::string> text = read_file(path);
  if (!text) return invalid(entry.file, file_field, text.error().message);
  return text;
}

Result<ExecPlugin> exec_plugin(const KubeconfigEntry& user, const ClusterConfig& cluster) {
  ExecPlugin plugin;
  plugin.api_version = user.text("exec.apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return invalid(user.file, "exec.apiVersion",
                   "must be client.authentication.k8s.io/v1 or v1beta1, is " + plugin.api_version);
  }
  plugin.command = user.text("exec.command");
  if (plugin.command.empty()) return invalid(user.file, "exec.command", "is missing");
  if (plugin.command.find('/') != std::string::npos) plugin.command = resolve_path(user.folder(), plugin.command);
  if (user.text("exec.interactiveMode") == "Always") {
    return invalid(user.file, "exec.interactiveMode", "Always needs a terminal; this program has none");
  }
  plugin.args = user.texts("exec.args");
  plugin.env = user.named_values("exec.env");
  plugin.install_hint = user.text("exec.installHint");
  if (user.text("exec.provideClusterInfo") == "true") {
    nlohmann::json info = {{"server", cluster.server}, {"insecure-skip-tls-verify", cluster.insecure}};
    if (!cluster.ca_pem.empty()) info["certificate-authority-data"] = encode_base64(cluster.ca_pem);
    if (!cluster.tls_server_name.empty()) info["tls-server-name"] = cluster.tls_server_name;
    if (!cluster.proxy_url.empty()) info["proxy-url"] = cluster.proxy_url;
    plugin.cluster_info_json = json_text(info);
  }
  return plugin;
}

Status refuse_what_is_not_supported(const KubeconfigEntry& user) {
  if (user.has("auth-provider")) {
    return invalid(user.file, "auth-provider", "no longer exists in Kubernetes; use an exec plugin");
  }
  if (user.has("as-user-extra")) {
    return invalid(user.file, "as-user-extra", "is not supported; impersonate by as, as-uid and as-groups");
  }
  return {};
}

/// Of a token, or of a name and password; empty without either.
std::string authorization_of(const KubeconfigEntry& user) {
  if (const std::string token = user.text("token"); !token.empty()) return "Bearer " + token;
  if (const std::string name = user.text("username"); !name.empty()) {
    return "Basic " + encode_base64(name + ":" + user.text("password"));
  }
  return "";
}

// client-go's order (tools/clientcmd/client_config.go and plugin/pkg/client/auth/exec): what is given outright
// wins over the plugin, and a token file over a token.
Result<std::shared_ptr<AuthSource>> user_auth(const KubeconfigEntry& user, const ClusterConfig& cluster,
                                              const std::shared_ptr<Clock>& clock) {
  if (Status status = refuse_what_is_not_supported(user); !status) return status.error();
  Credentials given;
  Result<std::string> certificate = data_or_file(user, "client-certificate-data", "client-certificate");
  if (!certificate) return certificate.error();
  Result<std::string> key = data_or_file(user, "client-key-data", "client-key");
  if (!key) return key.error();
  given.identity = {std::move(*certificate), std::move(*key)};
  if (given.identity.certificate_pem.empty() != given.identity.key_pem.empty()) {
    return invalid(user.file, "client-certificate", "a client certificate and its key must be given together");
  }
  CredentialFiles files;
  files.token = resolve_path(user.folder(), user.text("tokenFile"));
  if (user.text("client-certificate-data").empty() && user.text("client-key-data").empty()) {
    files.certificate = resolve_path(user.folder(), user.text("client-certificate"));
    files.key = resolve_path(user.folder(), user.text("client-key"));
  }
  if (files.token.empty()) given.authorization = authorization_of(user);
  const bool given_outright = !files.token.empty() || !given.authorization.empty() || !given.identity.key_pem.empty();
  if (!given_outright && user.has("exec")) {
    Result<ExecPlugin> plugin = exec_plugin(user, cluster);
    if (!plugin) return plugin.error();
    return exec_auth(std::move(*plugin), clock);
  }
  if (!files.token.empty() || !files.certificate.empty()) return file_auth(std::move(files), std::move(given), clock);
  return static_auth(std::move(given));
}

std::vector<std::pair<std::string, std::string>> impersonation(const KubeconfigEntry& user) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (const std::string as = user.text("as"); !as.empty()) headers.emplace_back("Impersonate-User", as);
  if (const std::string uid = user.text("as-uid"); !uid.empty()) headers.emplace_back("Impersonate-Uid", uid);
  for (const std::string& group : user.texts("as-groups")) headers.emplace_back("Impersonate-Group", group);
  return headers;
}

std::string without_trailing_slashes(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::string default_kubeconfig(const Environment& environment) {
  const std::string home = environment("HOME").value_or("");
  return home.empty() ? "" : home + "/.kube/config";
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it after start
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

Result<ClusterConfig> kubeconfig(const ConfigOptions& options) {
  Result<Kubeconfig> files = Error::make(Error::Code::NotFound, "");
  if (!options.kubeconfig.empty()) {
    files = Kubeconfig::load({options.kubeconfig}, /*all_must_exist=*/true);
  } else {
    const std::string list = options.environment("KUBECONFIG").value_or("");
    files = Kubeconfig::load(
        list.empty() ? std::vector<std::string>{default_kubeconfig(options.environment)} : split_list(list),
        /*all_must_exist=*/false);
  }
  if (!files) return files.error();

  const std::string name = options.context.empty() ? files->current_context : options.context;
  if (name.empty()) return Error::make(Error::Code::Invalid, files->files + ": no current-context is set");
  const auto context = files->contexts.find(name);
  if (context == files->contexts.end())
    return Error::make(Error::Code::Invalid, files->files + ": no context \"" + name + "\"");
  const auto cluster = files->clusters.find(context->second.text("cluster"));
  if (cluster == files->clusters.end()) {
    return invalid(context->second.file, "contexts." + name + ".cluster",
                   "no cluster \"" + context->second.text("cluster") + "\"");
  }

  ClusterConfig config;
  config.context = name;
  if (const std::string ns = context->second.text("namespace"); !ns.empty()) config.ns = ns;
  config.server = without_trailing_slashes(cluster->second.text("server"));
  if (!config.server.starts_with("https://") && !config.server.starts_with("http://")) {
    return invalid(cluster->second.file, "clusters." + cluster->first + ".server",
                   "must begin with https://, is \"" + config.server + "\"");
  }
  config.insecure = cluster->second.text("insecure-skip-tls-verify") == "true";
  if (config.insecure && (!cluster->second.text("certificate-authority-data").empty() ||
                          !cluster->second.text("certificate-authority").empty())) {
    // client-go refuses it too (transport/transport.go): a CA says that somebody means to be safe.
    return invalid(cluster->second.file, "clusters." + cluster->first + ".insecure-skip-tls-verify",
                   "cannot be true beside a certificate-authority; remove one of the two");
  }
  config.tls_server_name = cluster->second.text("tls-server-name");
  config.proxy_url = cluster->second.text("proxy-url");
  if (config.proxy_url.empty()) config.proxy_url = proxy_from_environment(config.server, options.environment);
  Result<std::string> ca = data_or_file(cluster->second, "certificate-authority-data", "certificate-authority");
  if (!ca) return ca.error();
  config.ca_pem = std::move(*ca);
  if (cluster->second.text("certificate-authority-data").empty()) {
    config.ca_file = resolve_path(cluster->second.folder(), cluster->second.text("certificate-authority"));
  }

  const std::string user_name = context->second.text("user");
  const auto user = files->users.find(user_name);
  if (user == files->users.end()) {
    if (!user_name.empty())
      return invalid(context->second.file, "contexts." + name + ".user", "no user \"" + user_name + "\"");
    config.auth = static_auth({});
    return config;
  }
  Result<std::shared_ptr<AuthSource>> auth = user_auth(user->second, config, options.clock);
  if (!auth) return auth.error();
  config.auth = std::move(*auth);
  config.headers = impersonation(user->second);
  return config;
}

Result<ClusterConfig> in_cluster_config(const ConfigOptions& options) {
  const std::string host = options.environment("KUBERNETES_SERVICE_HOST").value_or("");
  const std::string port = options.environment("KUBERNETES_SERVICE_PORT").value_or("");
  if (host.empty() || port.empty()) {
    return Error::make(Error::Code::NotFound, "not inside a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set");
  }
  ClusterConfig config;
  config.context = "in-cluster";
  // The HTTP library cannot take an IPv6 literal; the service's name has the same address and is in the certificate.
  config.server =
      host.find(':') != std::string::npos ? "https://kubernetes.default.svc:" + port : "https://" + host + ":" + port;
  config.proxy_url = proxy_from_environment(config.server, options.environment);
  const std::string token_path = options.service_account_dir + "/token";
  const Result<std::string> token = read_file(token_path);
  if (!token) return token.error();
  config.ca_file = options.service_account_dir + "/ca.crt";
  Result<std::string> ca = read_file(config.ca_file);
  if (!ca) return ca.error();
  config.ca_pem = std::move(*ca);
  if (const Result<std::string> ns = read_file(options.service_account_dir + "/namespace")) config.ns = trimmed(*ns);
  config.auth = file_auth({.token = token_path}, {}, options.clock);
  return config;
}

Result<ClusterConfig> load_config(const ConfigOptions& options) {
  Result<ClusterConfig> from_files = kubeconfig(options);
  if (from_files || from_files.error().code != Error::Code::NotFound || !options.kubeconfig.empty()) return from_files;
  Result<ClusterConfig> inside = in_cluster_config(options);
  if (inside || inside.error().code != Error::Code::NotFound) return inside;
  return Error::make(Error::Code::NotFound, from_files.error().message + "; and " + inside.error().message);
}

}  // namespace loadline::kube
