// Credentials from a kubeconfig exec plugin: runs it, bounds it in time, reads its ExecCredential.

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>

#include "kube/auth.h"
#include "kube/io_thread.h"
#include "kube/json_read.h"
#include "kube/refusals.h"
#include "kube/system_cas.h"

namespace loadline::kube {
namespace {

constexpr std::size_t kMaxOutput = 1024UL * 1024;
// A credential that ends this soon would end on the way (client-go gives its token sources the same leeway).
constexpr auto kLeeway = std::chrono::seconds(10);
// A plugin that fails, or whose credential is refused again, is not run for each of a busy client's requests.
constexpr auto kPause = std::chrono::seconds(5);

Error failed(const ExecPlugin& plugin, const std::string& what) {
  std::string message = "credential plugin " + plugin.command + ": " + what;
  if (!plugin.install_hint.empty()) message += "; " + plugin.install_hint;
  return Error::make(Error::Code::Forbidden, message);
}

std::vector<std::string> child_environment(const ExecPlugin& plugin) {
  nlohmann::json info = {
      {"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", {{"interactive", false}}}};
  if (!plugin.cluster_info_json.empty()) {
    if (Result<nlohmann::json> cluster = parse_json(plugin.cluster_info_json))
      info["spec"]["cluster"] = std::move(*cluster);
  }
  std::map<std::string, std::string> merged;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) merged[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  show_system_cas(merged);
  for (const auto& [name, value] : plugin.env) merged[name] = value;
  merged["KUBERNETES_EXEC_INFO"] = json_text(info);
  std::vector<std::string> out;
  out.reserve(merged.size());
  for (const auto& [name, value] : merged) out.emplace_back(name).append("=").append(value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Reads all of `fd` until its end or the deadline; false at the deadline or when the output is too long.
bool read_until(int fd, std::chrono::steady_clock::time_point deadline, std::string& out) {
  std::array<char, 4096> buffer{};
  while (out.size() <= kMaxOutput) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd, POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return false;
}

// Runs the plugin and gives what it wrote. Its stderr is ours: it may have something to say to the user.
Result<std::string> run(const ExecPlugin& plugin) {
  about_to_wait("a credential plugin");
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return failed(plugin, std::generic_category().message(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  // Our connections are not the plugin's, nor a daemon's that it may leave behind; nor are the signals that we
  // block or ignore.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &pipe);
  posix_spawnattr_setpgroup(&attributes, 0);  // a group of its own, so that it ends with all that it started
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> argument_texts{plugin.command};
  argument_texts.insert(argument_texts.end(), plugin.args.begin(), plugin.args.end());
  std::vector<std::string> environment_texts = child_environment(plugin);
  const std::vector<char*> arguments = pointers(argument_texts);
  const std::vector<char*> environment = pointers(environment_texts);
  pid_t child = 0;
  const int spawned =
      posix_spawnp(&child, plugin.command.c_str(), &actions, &attributes, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(pipe_ends[1]);
  std::string output;
  const bool ended =
      spawned == 0 && read_until(pipe_ends[0], std::chrono::steady_clock::now() + plugin.timeout, output);
  close(pipe_ends[0]);
  if (spawned != 0) return failed(plugin, std::generic_category().message(spawned));
  if (!ended) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) return failed(plugin, "gave no answer within " + std::to_string(plugin.timeout.count()) + " s");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return failed(plugin, WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status)) : "ended by a signal");
  }
  return output;
}

struct Issued {
  Credentials credentials;
  std::optional<TimePoint> expires;
};

Result<Issued> read_credential(const ExecPlugin& plugin, const std::string& output) {
  const Result<nlohmann::json> document = parse_json(output);
  if (!document) return failed(plugin, document.error().message);
  if (string_at(*document, {"kind"}) != "ExecCredential") return failed(plugin, "its output is no ExecCredential");
  if (string_at(*document, {"apiVersion"}) != plugin.api_version) {
    return failed(plugin, "answered with another apiVersion than " + plugin.api_version);
  }
  Issued issued;
  if (const auto token = string_at(*document, {"status", "token"}); token && !token->empty()) {
    issued.credentials.authorization = "Bearer " + std::string(*token);
  }
  const auto certificate = string_at(*document, {"status", "clientCertificateData"});
  const auto key = string_at(*document, {"status", "clientKeyData"});
  if (certificate && key) issued.credentials.identity = {std::string(*certificate), std::string(*key)};
  if (issued.credentials.authorization.empty() && issued.credentials.identity.key_pem.empty()) {
    return failed(plugin, "gave neither a token nor a certificate with its key");
  }
  issued.expires = time_at(*document, {"status", "expirationTimestamp"});
  return issued;
}

class ExecAuth final : public AuthSource {
 public:
  ExecAuth(ExecPlugin plugin, std::shared_ptr<Clock> clock) : plugin_(std::move(plugin)), clock_(std::move(clock)) {}

  Result<Credentials> credentials() override {
    const std::lock_guard lock(mutex_);
    const bool lasts = !expires_ || *expires_ > clock_->wall() + kLeeway;
    const bool refused = outcome_ && refusals_.take(*outcome_);
    const bool rests = (refused || !outcome_) && clock_->now() < run_again_;
    if (rests || (outcome_ && lasts && !refused)) return outcome_;
    outcome_ = renew();
    if (refused || !outcome_) run_again_ = clock_->now() + kPause;
    return outcome_;
  }

  void refused(const Credentials& what) override { refusals_.add(what); }

 private:
  Result<Credentials> renew() {
    expires_.reset();
    const Result<std::string> output = run(plugin_);
    if (!output) return output.error();
    Result<Issued> issued = read_credential(plugin_, *output);
    if (!issued) return issued.error();
    expires_ = issued->expires;
    return std::move(issued->credentials);
  }

  const ExecPlugin plugin_;
  const std::shared_ptr<Clock> clock_;
  Refusals refusals_;
  std::mutex mutex_;  // held while the plugin runs: one run at a time
  Result<Credentials> outcome_ = Error::make(Error::Code::Forbidden, "not run yet");
  std::optional<TimePoint> expires_;
  Clock::Time run_again_ = Clock::Time::min();
};

}  // namespace

std::shared_ptr<AuthSource> exec_auth(ExecPlugin plugin, std::shared_ptr<Clock> clock) {
  return std::make_shared<ExecAuth>(std::move(plugin), std::move(clock));
}

}  // namespace loadline::kube
