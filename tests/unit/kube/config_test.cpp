#include "kube/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "kube/files.h"
#include "kube/proxy.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest()
      : folder_(fs::temp_directory_path() / ("loadline-config-" + std::to_string(::getpid()) + "-" + unique())) {
    fs::create_directories(folder_);
    options_.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    };
    options_.clock = clock_;
    options_.service_account_dir = (folder_ / "sa").string();
  }
  ~ConfigTest() override { fs::remove_all(folder_); }

  static std::string unique() {
    static int n = 0;
    return std::to_string(++n);
  }

  std::string write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  // A kubeconfig with one context "c" whose user has `user` (YAML flow fields).
  std::string kubeconfig_with(const std::string& user, const std::string& cluster = "server: https://api:6443") {
    return write("config",
                 "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: "
                 "team}}]\nclusters: [{name: k, cluster: {" +
                     cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n");
  }

  std::string authorization(const ClusterConfig& config) {
    const Result<Credentials> who = config.auth->credentials();
    return who ? who->authorization : "error: " + who.error().message;
  }

  const fs::path folder_;
  std::map<std::string, std::string> environment_;
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  ConfigOptions options_;
};

TEST_F(ConfigTest, ReadsServerNamespaceAndInlineCertificates) {
  options_.kubeconfig = kubeconfig_with(
      "client-certificate-data: " + encode_base64("CERT") + ", client-key-data: " + encode_base64("KEY"),
      "server: 'https://api:6443/', certificate-authority-data: " + encode_base64("CA PEM") +
          ", tls-server-name: api.svc");
  const Result<ClusterConfig> config = load_config(options_);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->server, "https://api:6443");
  EXPECT_EQ(config->ns, "team");
  EXPECT_EQ(config->context, "c");
  EXPECT_EQ(config->ca_pem, "CA PEM");
  EXPECT_EQ(config->tls_server_name, "api.svc");
  EXPECT_EQ(config->auth->credentials()->identity, (ClientIdentity{"CERT", "KEY"}));
}

TEST_F(ConfigTest, RelativePathsStartAtTheirFileAndDataWinsOverPaths) {
  write("sub/ca.crt", "CA FILE");
  write("sub/token", " file-token\n");
  write("sub/config",
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        "clusters: [{name: k, cluster: {server: https://api, certificate-authority: ca.crt}}]\n"
        "users: [{name: u, user: {tokenFile: token, client-certificate: missing.crt, client-certificate-data: " +
            encode_base64("C") + ", client-key-data: " + encode_base64("K") + "}}]\n");
  options_.kubeconfig = (folder_ / "sub/config").string();
  const Result<ClusterConfig> config = load_config(options_);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->ca_pem, "CA FILE");
  EXPECT_EQ(config->ca_file, (folder_ / "sub/ca.crt").string());
  EXPECT_EQ(authorization(*config), "Bearer file-token");
}

TEST_F(ConfigTest, KubeconfigListIsMergedAndTheFirstToSetAValueWins) {
  const std::string a =
      write("a", "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: first}}]\n");
  const std::string b = write("b",
                              "current-context: c\nclusters: [{name: k, cluster: {server: https://b}}]\nusers: [{name: "
                              "u, user: {token: second}}]\n");
  const std::string c = write("c", "current-context: other\nclusters: [{name: k, cluster: {server: https://c}}]\n");
  environment_["KUBECONFIG"] = a + ":" + (folder_ / "missing").string() + "::" + b + ":" + c;
  const Result<ClusterConfig> config = load_config(options_);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->server, "https://b");
  EXPECT_EQ(authorization(*config), "Bearer first");
  EXPECT_EQ(config->ns, "default");
}

TEST_F(ConfigTest, AnExplicitPathIsUsedAloneAndMustExist) {
  environment_["KUBECONFIG"] = kubeconfig_with("token: t");
  options_.kubeconfig = (folder_ / "missing").string();
  EXPECT_FALSE(load_config(options_).ok());
}

TEST_F(ConfigTest, HomeIsTheDefaultAndAContextCanBeChosen) {
  environment_["HOME"] = folder_.string();
  write(".kube/config",
        "current-context: a\ncontexts: [{name: a, context: {cluster: k}}, {name: b, context: {cluster: l}}]\n"
        "clusters: [{name: k, cluster: {server: https://k}}, {name: l, cluster: {server: https://l}}]\n");
  EXPECT_EQ(load_config(options_)->server, "https://k");
  options_.context = "b";
  EXPECT_EQ(load_config(options_)->server, "https://l");
  options_.context = "nobody";
  EXPECT_EQ(load_config(options_).error().code, Error::Code::Invalid);
}

struct Precedence {
  const char* name;
  const char* user;
  const char* authorization;
};

TEST_F(ConfigTest, CredentialsHaveClientGosPrecedence) {
  const std::string token_file = write("token", "from-file");
  const std::string plugin = write("plugin.sh",
                                   "#!/bin/sh\necho "
                                   "'{\"apiVersion\":\"client.authentication.k8s.io/"
                                   "v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"from-exec\"}}'\n");
  fs::permissions(plugin, fs::perms::owner_all);
  const std::string exec =
      "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin.sh, interactiveMode: Never}";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"tokenFile: " + token_file + ", token: stale", "Bearer from-file"},
      {"token: given, " + exec, "Bearer given"},
      {"username: a, password: b, " + exec, "Basic " + encode_base64("a:b")},
      {exec, "Bearer from-exec"},
      {"", ""},
  };
  for (const auto& [user, expected] : cases) {
    options_.kubeconfig = kubeconfig_with(user);
    const Result<ClusterConfig> config = load_config(options_);
    ASSERT_TRUE(config.ok()) << user << ": " << config.error().message;
    EXPECT_EQ(authorization(*config), expected) << user;
  }
}

TEST_F(ConfigTest, BadFilesAreNamedWithTheirField) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"client-certificate-data: '!!'", "client-certificate-data"},
      {"client-key-data: " + encode_base64("K"), "client-certificate"},
      {"exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}", "exec.apiVersion"},
      {"auth-provider: {name: gcp}", "auth-provider"},
  };
  for (const auto& [user, field] : cases) {
    options_.kubeconfig = kubeconfig_with(user);
    const Result<ClusterConfig> config = load_config(options_);
    ASSERT_FALSE(config.ok()) << user;
    EXPECT_NE(config.error().message.find(field), std::string::npos) << config.error().message;
    EXPECT_NE(config.error().message.find(options_.kubeconfig), std::string::npos) << config.error().message;
  }
  options_.kubeconfig = write("broken", "clusters: [");
  EXPECT_EQ(load_config(options_).error().code, Error::Code::Invalid);
}

TEST_F(ConfigTest, InsideAPodTheServiceAccountIsUsed) {
  environment_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  environment_["KUBERNETES_SERVICE_PORT"] = "443";
  write("sa/token", "one");
  write("sa/ca.crt", "CA");
  write("sa/namespace", "loadline-system\n");
  const Result<ClusterConfig> config = load_config(options_);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->server, "https://10.0.0.1:443");
  EXPECT_EQ(config->ns, "loadline-system");
  EXPECT_EQ(authorization(*config), "Bearer one");

  environment_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(load_config(options_)->server, "https://kubernetes.default.svc:443");
}

TEST_F(ConfigTest, ARotatedTokenIsReadAgainAfterAMinuteOrARefusal) {
  const std::string path = write("token", "one");
  const auto auth = token_file_auth(path, {}, clock_);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer one");
  write("token", "two");
  EXPECT_EQ(auth->credentials()->authorization, "Bearer one");
  clock_->advance(61s);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer two");
  write("token", "three");
  auth->invalidate();
  EXPECT_EQ(auth->credentials()->authorization, "Bearer three");
  fs::remove(path);
  clock_->advance(61s);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer three") << "the last good one stays";
}

TEST_F(ConfigTest, AnExecCredentialIsRenewedBeforeItEnds) {
  write("n", "");
  ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  plugin.command = "/bin/sh";
  plugin.args = {
      "-c",
      "printf x >> \"$COUNT\"; echo "
      "'{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t'$(wc "
      "-c < \"$COUNT\")'\",\"expirationTimestamp\":\"'$UNTIL'\"}}'"};
  plugin.env = {{"COUNT", (folder_ / "n").string()}, {"UNTIL", rfc3339(clock_->wall() + 100s)}};
  const auto auth = exec_auth(plugin, clock_);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t1");
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t1");
  clock_->advance(95s);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t2");
  auth->invalidate();
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t3");
}

TEST_F(ConfigTest, AFailingOrHangingPluginSaysSo) {
  ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  plugin.command = "/bin/sh";
  plugin.install_hint = "install it";
  plugin.timeout = 1s;
  for (const auto& [script, words] :
       std::vector<std::pair<std::string, std::string>>{{"exit 3", "exit code 3"},
                                                        {"sleep 30", "no answer within 1 s"},
                                                        {"echo hello", "not JSON"},
                                                        {"echo '{}'", "no ExecCredential"}}) {
    plugin.args = {"-c", script};
    const Result<Credentials> who = exec_auth(plugin, clock_)->credentials();
    ASSERT_FALSE(who.ok()) << script;
    EXPECT_NE(who.error().message.find(words), std::string::npos) << who.error().message;
    EXPECT_NE(who.error().message.find("install it"), std::string::npos);
  }
}

TEST(Proxy, NoProxyNamesHostsSuffixesAndRanges) {
  struct Case {
    const char* host;
    const char* rules;
    bool bypassed;
  };
  for (const Case& c :
       {Case{"api.example.com", "example.com", true}, Case{"api.example.com", ".example.com", true},
        Case{"badexample.com", "example.com", false}, Case{"10.0.0.1", "10.0.0.0/8", true},
        Case{"11.0.0.1", "10.0.0.0/8", false}, Case{"10.0.0.1", "192.168.0.1, 10.0.0.1", true}, Case{"x", "*", true},
        Case{"127.0.0.1", "", true}, Case{"localhost", "", true}, Case{"api", "10.0.0.0/99", false}}) {
    EXPECT_EQ(bypasses_proxy(c.host, c.rules), c.bypassed) << c.host << " " << c.rules;
  }
  const Environment environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "https_proxy") return "proxy:3128";
    if (name == "NO_PROXY") return ".internal";
    return std::nullopt;
  };
  EXPECT_EQ(proxy_from_environment("https://api.example.com:6443", environment), "http://proxy:3128");
  EXPECT_EQ(proxy_from_environment("https://api.internal:6443", environment), "");
}

TEST(Base64, RoundTripsAndRefusesJunk) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd"}) EXPECT_EQ(*decode_base64(encode_base64(text)), text);
  EXPECT_EQ(*decode_base64("YW\nJj\n"), "abc");
  EXPECT_FALSE(decode_base64("YWJ").ok());
  EXPECT_FALSE(decode_base64("****").ok());
}

}  // namespace
}  // namespace loadline::kube
