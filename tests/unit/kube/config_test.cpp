#include "kube/config.h"

#include "kube/files.h"
#include "kube/proxy.h"
#include "tests/unit/kube/config_fixture.h"

namespace loadline::kube {
namespace {

namespace fs = std::filesystem;

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
      {"token: t, as: a, as-user-extra: {k: [v]}", "as-user-extra"},
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

TEST_F(ConfigTest, ACaAndNoVerificationContradictEachOther) {
  const std::string insecure = "server: https://api:6443, insecure-skip-tls-verify: true";
  const std::string ca_file = write("ca.crt", "CA FILE");
  for (const std::string& ca :
       {"certificate-authority-data: " + encode_base64("CA PEM"), "certificate-authority: " + ca_file}) {
    options_.kubeconfig = kubeconfig_with("token: t", insecure + ", " + ca);
    const Result<ClusterConfig> config = load_config(options_);
    ASSERT_FALSE(config.ok()) << ca;
    EXPECT_EQ(config.error().code, Error::Code::Invalid);
    EXPECT_NE(config.error().message.find("insecure-skip-tls-verify"), std::string::npos) << config.error().message;
  }
  options_.kubeconfig = kubeconfig_with("token: t", insecure);
  const Result<ClusterConfig> config = load_config(options_);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_TRUE(config->insecure);
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

TEST_F(ConfigTest, AClustersOwnProxyWinsOverTheEnvironments) {
  environment_ = {{"HTTPS_PROXY", "http://general:3128"}, {"NO_PROXY", "direct.example"}};
  const auto proxy_of = [&](const std::string& cluster) {
    options_.kubeconfig = kubeconfig_with("token: t", cluster);
    return load_config(options_)->proxy_url;
  };
  EXPECT_EQ(proxy_of("server: https://api.example:6443"), "http://general:3128");
  EXPECT_EQ(proxy_of("server: https://direct.example:6443"), "");
  EXPECT_EQ(proxy_of("server: https://direct.example:6443, proxy-url: 'http://own:3128'"), "http://own:3128");
}

TEST(Proxy, NoProxyNamesHostsSuffixesAndRanges) {
  struct Case {
    const char* host;
    const char* rules;
    bool bypassed;
  };
  for (const Case& c : {Case{"api.example.com", "example.com", true}, Case{"api.example.com", ".example.com", true},
                        Case{"badexample.com", "example.com", false}, Case{"10.0.0.1", "10.0.0.0/8", true},
                        Case{"11.0.0.1", "10.0.0.0/8", false}, Case{"10.0.0.1", "192.168.0.1, 10.0.0.1", true},
                        Case{"x", "*", true}, Case{"127.0.0.1", "", true}, Case{"localhost", "", true},
                        Case{"api", "10.0.0.0/99", false}, Case{"api.Example.COM", "EXAMPLE.com", true},
                        Case{"api.example.com", "*.example.com", true}, Case{"api", "api:6443", true},
                        Case{"api", "api:443", false}, Case{"10.0.0.1", "10.0.0.1:443,10.0.0.1:6443", true}}) {
    EXPECT_EQ(bypasses_proxy(c.host, "6443", c.rules), c.bypassed) << c.host << " " << c.rules;
  }
  const Environment environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "https_proxy") return "proxy:3128";
    if (name == "NO_PROXY") return ".internal";
    return std::nullopt;
  };
  EXPECT_EQ(proxy_from_environment("https://api.example.com:6443", environment), "http://proxy:3128");
  EXPECT_EQ(proxy_from_environment("https://api.internal:6443", environment), "");
}

TEST(Proxy, TakesHostAndPortOutOfAnAddress) {
  struct Case {
    const char* url;
    const char* host;
    const char* port;
  };
  for (const Case& c : {Case{"https://api:6443/path", "api", "6443"}, Case{"https://api", "api", "443"},
                        Case{"http://api/x:1", "api", "80"}, Case{"https://[fd00::1]:6443", "fd00::1", "6443"},
                        Case{"https://[fd00::1]", "fd00::1", "443"}, Case{"http://user:pass@proxy", "proxy", "80"},
                        Case{"http://user:pass@proxy:3128/", "proxy", "3128"}, Case{"http://proxy:", "proxy", "80"}}) {
    EXPECT_EQ(host_of(c.url), c.host) << c.url;
    EXPECT_EQ(port_of(c.url), c.port) << c.url;
  }
}

TEST(Base64, RoundTripsAndRefusesJunk) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd"}) EXPECT_EQ(*decode_base64(encode_base64(text)), text);
  EXPECT_EQ(*decode_base64("YW\nJj\n"), "abc");
  EXPECT_FALSE(decode_base64("YWJ").ok());
  for (const char* junk : {"****", "YWJ-", "YW-=", "-WJj", "====", "Y===", "YW=j", "YWJjYW==YWJj"}) {
    EXPECT_FALSE(decode_base64(junk).ok()) << junk;
  }
}

TEST_F(ConfigTest, AFileIsReadWholeUpToItsLimit) {
  const std::string text(10000, 'x');
  EXPECT_EQ(*read_file(write("text", text)), text);
  EXPECT_EQ(*read_file(write("empty", "")), "");
  EXPECT_EQ(read_file((folder_ / "missing").string()).error().code, Error::Code::NotFound);
  EXPECT_EQ(read_file(folder_.string()).error().code, Error::Code::Invalid);
  EXPECT_EQ(read_file("/dev/zero").error().code, Error::Code::Invalid) << "a file without an end";
}

}  // namespace
}  // namespace loadline::kube
