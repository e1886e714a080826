// Credentials from a kubeconfig exec plugin: runs it, bounds it in time, reads its ExecCredential.

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <system_error>
#include <thread>

#include "kube/auth.h"
#include "kube/fault.h"
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

// How long a plugin may run: until its time is over, or nobody needs it any more.
struct Bounds {
  Clock::Time until;
  std::stop_token stop;
  [[nodiscard]] bool over() const { return stop.stop_requested() || std::chrono::steady_clock::now() >= until; }
};
// How often they are looked at.
constexpr auto kLook = std::chrono::milliseconds(10);

enum class Heard { All, TooMuch, NoEnd };

// Reads all of `fd` until its end.
Heard read_all(int fd, const Bounds& bounds, std::string& out) {
  std::array<char, 4096> buffer{};
  while (!bounds.over()) {
    pollfd waiting{fd, POLLIN, 0};
    if (poll(&waiting, 1, kLook.count()) <= 0) continue;
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Heard::All;
    out.append(buffer.data(), static_cast<std::size_t>(n));
    if (out.size() > kMaxOutput) return Heard::TooMuch;
  }
  return Heard::NoEnd;
}

// The status with which `child` ended by itself; nothing when it did not.
std::optional<int> wait_for(pid_t child, const Bounds& bounds) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    // Where SIGCHLD is ignored nobody learns the status; what was written has to do.
    if (ended < 0 && errno != EINTR) return 0;
    if (bounds.over()) return std::nullopt;
    std::this_thread::sleep_for(kLook);
  }
}

void kill_all_of(pid_t child) {
  kill(-child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Starts the plugin; its output goes to `output`. Its stderr is ours: it may have something to say to the user.
Result<pid_t> spawn(const ExecPlugin& plugin, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
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
  const int failure =
      posix_spawnp(&child, plugin.command.c_str(), &actions, &attributes, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0) return failed(plugin, std::generic_category().message(failure));
  return child;
}

// What a plugin that was started wrote. When this returns it has ended.
Result<std::string> answer_of(const ExecPlugin& plugin, pid_t child, int output, const Bounds& bounds) {
  std::string text;
  const Heard heard = read_all(output, bounds, text);
  // The end of what it writes is not its end.
  const std::optional<int> status = heard == Heard::All ? wait_for(child, bounds) : std::nullopt;
  if (!status) {
    kill_all_of(child);
    if (heard == Heard::TooMuch) return failed(plugin, "wrote more than 1 MiB, which is no ExecCredential");
    const std::string what = heard == Heard::All ? "did not end within " : "gave no answer within ";
    return failed(plugin, what + std::to_string(plugin.timeout.count()) + " s");
  }
  if (!WIFEXITED(*status)) return failed(plugin, "ended by a signal");
  if (WEXITSTATUS(*status) != 0) return failed(plugin, "exit code " + std::to_string(WEXITSTATUS(*status)));
  return text;
}

// Runs the plugin and gives what it wrote.
Result<std::string> run(const ExecPlugin& plugin, const std::stop_token& stop) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return failed(plugin, std::generic_category().message(errno));
  const Bounds bounds{std::chrono::steady_clock::now() + plugin.timeout, stop};
  const Result<pid_t> child = spawn(plugin, pipe_ends[1]);
  close(pipe_ends[1]);
  Result<std::string> answer = child ? answer_of(plugin, *child, pipe_ends[0], bounds) : child.error();
  close(pipe_ends[0]);
  return answer;
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

// The plugin runs on a thread of its own, one run at a time: whoever has no more patience goes, and the run goes on for
// the others.
class ExecAuth final : public AuthSource {
 public:
  ExecAuth(ExecPlugin plugin, std::shared_ptr<Clock> clock) : plugin_(std::move(plugin)), clock_(std::move(clock)) {}

  Result<Credentials> credentials(const Patience& patience) override {
    const std::stop_callback wake(patience.stop, [this] {
      const std::lock_guard held(mutex_);
      ended_.notify_all();
    });
    std::unique_lock lock(mutex_);
    if (!running_ && !may_keep_outcome()) start();
    if (!running_) return outcome_;
    about_to_wait("a credential plugin");
    const auto awaited = runs_;
    const auto goes_on = [&] { return running_ && runs_ == awaited; };
    ended_.wait_until(lock, patience.until, [&] { return !goes_on() || patience.stop.stop_requested(); });
    if (goes_on()) return failed(plugin_, "gave no answer yet");
    return outcome_;
  }

  void refused(const Credentials& what) override { refusals_.add(what); }

 private:
  // The rest under mutex_.
  bool may_keep_outcome() {
    const bool lasts = !expires_ || *expires_ > clock_->wall() + kLeeway;
    refused_ = outcome_ && refusals_.take(*outcome_);
    const bool rests = (refused_ || !outcome_) && clock_->now() < run_again_;
    return rests || (outcome_ && lasts && !refused_);
  }

  void start() {
    // The thread of the run before has said its last word under mutex_.
    thread_ = std::jthread([this](const std::stop_token& stop) {
      Result<Issued> issued = failed(plugin_, "was not run");
      const std::string fault = fault_of([&] { issued = issue(stop); });
      if (!fault.empty()) issued = failed(plugin_, fault);
      finish(std::move(issued));
    });
    running_ = true;
    ++runs_;
  }

  Result<Issued> issue(const std::stop_token& stop) const {
    const Result<std::string> output = run(plugin_, stop);
    if (!output) return output.error();
    return read_credential(plugin_, *output);
  }

  void finish(Result<Issued> issued) {
    const std::lock_guard lock(mutex_);
    expires_ = issued ? issued->expires : std::nullopt;
    outcome_ = issued ? Result<Credentials>(std::move(issued->credentials)) : issued.error();
    if (refused_ || !outcome_) run_again_ = clock_->now() + kPause;
    running_ = false;
    ended_.notify_all();
  }

  const ExecPlugin plugin_;
  const std::shared_ptr<Clock> clock_;
  Refusals refusals_;
  std::mutex mutex_;  // never held while the plugin runs
  std::condition_variable ended_;
  Result<Credentials> outcome_ = Error::make(Error::Code::Forbidden, "not run yet");
  std::optional<TimePoint> expires_;
  Clock::Time run_again_ = Clock::Time::min();
  std::uint64_t runs_ = 0;
  bool running_ = false;
  bool refused_ = false;  // the outcome that the run now on its way is to replace
  std::jthread thread_;   // last: it ends before what it uses
};

}  // namespace

std::shared_ptr<AuthSource> exec_auth(ExecPlugin plugin, std::shared_ptr<Clock> clock) {
  return std::make_shared<ExecAuth>(std::move(plugin), std::move(clock));
}

}  // namespace loadline::kube
