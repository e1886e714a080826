// What is renewed under us: tokens, certificates, CAs, credentials of plugins.
#include <fcntl.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "kube/auth.h"
#include "kube/ca_bundle.h"
#include "kube/cpprest_transport.h"
#include "kube/files.h"
#include "kube/system_cas.h"
#include "tests/unit/kube/config_fixture.h"
#include "tests/unit/kube/eventually.h"
#include "tests/unit/kube/http_server.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

TEST_F(ConfigTest, ARotatedTokenIsReadAgainAfterAMinuteOrARefusal) {
  const std::string path = write("token", "one");
  const auto auth = file_auth({.token = path}, {}, clock_);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer one");
  write("token", "two");
  EXPECT_EQ(auth->credentials()->authorization, "Bearer one");
  clock_->advance(61s);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer two");
  write("token", "three");
  auth->refused({"Bearer one", {}});
  EXPECT_EQ(auth->credentials()->authorization, "Bearer two") << "that an older one was refused is no news";
  auth->refused({"Bearer two", {}});
  EXPECT_EQ(auth->credentials()->authorization, "Bearer three");
  fs::remove(path);
  clock_->advance(61s);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer three") << "the last good one stays";
}

TEST_F(ConfigTest, ATokenThatWasNeverThereIsAnError) {
  const auto auth = file_auth({.token = write("token", " \n")}, {}, clock_);
  EXPECT_EQ(auth->credentials().error().code, Error::Code::Forbidden);
  write("token", "late");
  EXPECT_EQ(auth->credentials()->authorization, "Bearer late");
  EXPECT_EQ(file_auth({.token = "/nowhere/token"}, {}, clock_)->credentials().error().code, Error::Code::Forbidden);
}

TEST_F(ConfigTest, ARotatedClientCertificateIsUsedOnceItsKeyIsThereToo) {
  const TestPki first = TestPki::make();
  const TestPki second = TestPki::make();
  const std::string certificate = write("tls.crt", first.client_certificate_pem);
  const std::string key = write("tls.key", first.client_key_pem);
  options_.kubeconfig = kubeconfig_with("client-certificate: " + certificate + ", client-key: " + key);
  const Result<ClusterConfig> config = load_config(options_);
  ASSERT_TRUE(config.ok()) << config.error().message;
  const ClientIdentity old{first.client_certificate_pem, first.client_key_pem};
  EXPECT_EQ(config->auth->credentials()->identity, old);
  write("tls.crt", second.client_certificate_pem);
  clock_->advance(61s);
  EXPECT_EQ(config->auth->credentials()->identity, old) << "half a rotation";
  write("tls.key", second.client_key_pem);
  clock_->advance(61s);
  EXPECT_EQ(config->auth->credentials()->identity,
            (ClientIdentity{second.client_certificate_pem, second.client_key_pem}));
}

TEST_F(ConfigTest, ARotatedCaIsTrustedAfterAMinuteOrAFailedConnection) {
  const std::string first = TestPki::make().ca_pem;
  const std::string second = TestPki::make().ca_pem;
  const std::string path = write("ca.crt", first);
  CaBundle ca(first, path, clock_);
  write("ca.crt", second);
  EXPECT_EQ(ca.pem(), first);
  clock_->advance(61s);
  EXPECT_EQ(ca.pem(), second);
  write("ca.crt", first);
  ca.doubt();
  EXPECT_EQ(ca.pem(), first);
  for (const char* bad : {"", "half a certificate"}) {
    write("ca.crt", bad);
    ca.doubt();
    EXPECT_EQ(ca.pem(), first) << "the last good one stays";
  }
  fs::remove(path);
  ca.doubt();
  EXPECT_EQ(ca.pem(), first);
}

class ExecTest : public ConfigTest {
 protected:
  // A plugin that counts its runs and then does `script`.
  ExecPlugin plugin(const std::string& script) {
    write("runs", "");
    ExecPlugin out;
    out.api_version = "client.authentication.k8s.io/v1";
    out.command = "/bin/sh";
    out.args = {"-c", "printf x >> \"$RUNS\"; " + script};
    out.env = {{"RUNS", (folder_ / "runs").string()}, {"UNTIL", rfc3339(clock_->wall() + 100s)}};
    return out;
  }
  [[nodiscard]] std::uintmax_t runs() const { return fs::file_size(folder_ / "runs"); }

  static constexpr const char* kTokenOfEachRun =
      "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t'"
      "$(wc -c < \"$RUNS\")'\",\"expirationTimestamp\":\"'$UNTIL'\"}}'";
};

TEST_F(ExecTest, ACredentialIsRenewedBeforeItEndsAndWhenItIsRefused) {
  const auto auth = exec_auth(plugin(kTokenOfEachRun), clock_);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t1");
  clock_->advance(89s);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t1");
  clock_->advance(2s);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t2") << "it would end within 10 s";
}

TEST_F(ExecTest, ARefusedCredentialIsRenewedButNotForEachRequest) {
  const auto auth = exec_auth(plugin(kTokenOfEachRun), clock_);
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t1");
  auth->refused({"Bearer t0", {}});
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t1") << "that an older one was refused is no news";
  auth->refused({"Bearer t1", {}});
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t2");
  for (int i = 0; i < 10; ++i) {
    auth->refused({"Bearer t2", {}});
    EXPECT_EQ(auth->credentials()->authorization, "Bearer t2");
  }
  clock_->advance(5s);
  auth->refused({"Bearer t2", {}});
  EXPECT_EQ(auth->credentials()->authorization, "Bearer t3");
  EXPECT_EQ(runs(), 3U);
}

TEST_F(ExecTest, AFailingPluginIsNotRunForEachRequest) {
  const auto auth = exec_auth(plugin("exit 1"), clock_);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(auth->credentials().ok());
  EXPECT_EQ(runs(), 1U);
  clock_->advance(5s);
  EXPECT_FALSE(auth->credentials().ok());
  EXPECT_EQ(runs(), 2U);
}

TEST_F(ExecTest, TellingOfARefusalDoesNotWaitForAPluginThatRuns) {
  const std::string gate = (folder_ / "gate").string();
  const auto auth = exec_auth(plugin("while [ ! -e " + gate + " ]; do sleep 0.01; done; " + kTokenOfEachRun), clock_);
  std::atomic<bool> done{false};
  std::jthread caller([&] {
    EXPECT_TRUE(auth->credentials().ok());
    done = true;
  });
  while (runs() == 0) std::this_thread::sleep_for(1ms);
  auth->refused({"Bearer t0", {}});  // an I/O thread may be the one who tells
  EXPECT_FALSE(done);
  write("gate", "");
}

TEST_F(ExecTest, APluginDoesNotInheritOurFiles) {
  const int open_file = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as the HTTP library's sockets
  const std::string seen = (folder_ / "seen").string();
  const auto auth = exec_auth(plugin("ls -l /proc/$$/fd > " + seen + "; " + kTokenOfEachRun), clock_);
  EXPECT_TRUE(auth->credentials().ok());
  EXPECT_EQ(read_file(seen)->find(" " + std::to_string(open_file) + " -> "), std::string::npos) << *read_file(seen);
  ::close(open_file);
}

TEST_F(ExecTest, APluginDoesNotInheritTheSignalsWeBlockOrIgnore) {
  sigset_t term;
  sigset_t before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &before);
  const auto handler_before = std::signal(SIGPIPE, SIG_IGN);
  // Not a shell, which changes its signals by itself. It gives no credential, but that is not the matter here.
  const std::string seen = (folder_ / "seen").string();
  ExecPlugin copies_its_status = plugin("");
  copies_its_status.command = "cp";
  copies_its_status.args = {"/proc/self/status", seen};
  EXPECT_FALSE(exec_auth(copies_its_status, clock_)->credentials().ok());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::signal(SIGPIPE, handler_before);
  const std::size_t ignored = read_file(seen)->find("SigIgn:\t");
  ASSERT_NE(ignored, std::string::npos);
  EXPECT_EQ(std::stoull(read_file(seen)->substr(ignored + 8), nullptr, 16) & (1ULL << (SIGPIPE - 1)), 0U);
  EXPECT_NE(read_file(seen)->find("SigBlk:\t0000000000000000"), std::string::npos) << *read_file(seen);
}

TEST_F(ExecTest, TheSystemsCasAreHiddenFromUsAndNotFromAPlugin) {
  start_transport_io();  // hides them too; from here on the test's own values are hidden
  ::setenv("SSL_CERT_FILE", "/own/bundle.pem", 1);
  ::unsetenv("SSL_CERT_DIR");
  hide_system_cas();
  EXPECT_STREQ(std::getenv("SSL_CERT_FILE"), "/dev/null");
  EXPECT_STREQ(std::getenv("SSL_CERT_DIR"), "/dev/null");
  const std::string seen = (folder_ / "seen").string();
  EXPECT_TRUE(exec_auth(plugin("env > " + seen + "; " + kTokenOfEachRun), clock_)->credentials().ok());
  EXPECT_NE(read_file(seen)->find("SSL_CERT_FILE=/own/bundle.pem\n"), std::string::npos) << *read_file(seen);
  EXPECT_EQ(read_file(seen)->find("SSL_CERT_DIR"), std::string::npos) << *read_file(seen);
}

TEST_F(ExecTest, WhatAHungPluginStartedEndsWithIt) {
  ExecPlugin hangs = plugin("sleep 1000 & echo $! > " + (folder_ / "child").string() + "; wait");
  hangs.timeout = 1s;
  EXPECT_FALSE(exec_auth(hangs, clock_)->credentials().ok());
  const pid_t child = std::stoi(*read_file((folder_ / "child").string()));
  // Dead, or a zombie that nobody has waited for yet.
  EXPECT_TRUE(eventually([&] {
    const Result<std::string> status = read_file("/proc/" + std::to_string(child) + "/status");
    return !status || status->find("State:\tZ") != std::string::npos;
  }));
}

TEST_F(ExecTest, APluginThatHasAnsweredMustAlsoEndInTime) {
  ExecPlugin lingers = plugin(std::string(kTokenOfEachRun) + "; exec >&-; sleep 10");
  lingers.timeout = 1s;
  const Result<Credentials> none = exec_auth(lingers, clock_)->credentials();
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("did not end within 1 s"), std::string::npos) << none.error().message;
}

TEST_F(ExecTest, APluginThatWritesTooMuchIsToldFromASlowOne) {
  const Result<Credentials> none = exec_auth(plugin("head -c 2000000 /dev/zero"), clock_)->credentials();
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("more than 1 MiB"), std::string::npos) << none.error().message;
}

TEST_F(ExecTest, WhoLosesPatienceLeavesThePluginToTheOthers) {
  const std::string gate = (folder_ / "gate").string();
  const auto auth = exec_auth(plugin("while [ ! -e " + gate + " ]; do sleep 0.01; done; " + kTokenOfEachRun), clock_);
  EXPECT_FALSE(auth->credentials({.until = std::chrono::steady_clock::now() + 50ms}).ok());
  std::stop_source stop;
  std::jthread impatient([&] { EXPECT_FALSE(auth->credentials({.stop = stop.get_token()}).ok()); });
  std::jthread patient([&] { EXPECT_EQ(auth->credentials()->authorization, "Bearer t1"); });
  stop.request_stop();
  impatient.join();
  write("gate", "");
  patient.join();
  EXPECT_EQ(runs(), 1U);
}

TEST_F(ExecTest, APluginThatNobodyNeedsAnyMoreIsEnded) {
  const std::string pid_file = (folder_ / "pid").string();
  auto auth = exec_auth(plugin("echo $$ > " + pid_file + "; sleep 1000"), clock_);
  EXPECT_FALSE(auth->credentials({.until = std::chrono::steady_clock::now() + 50ms}).ok());
  ASSERT_TRUE(eventually([&] {
    const Result<std::string> pid = read_file(pid_file);
    return pid && !pid->empty();
  }));
  auth.reset();
  EXPECT_FALSE(fs::exists("/proc/" + trimmed(*read_file(pid_file))));
}

}  // namespace
}  // namespace loadline::kube
