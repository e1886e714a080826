#include "tests/process/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <system_error>

extern char** environ;

namespace loadline::testing {
namespace {

/// Both ends of a pipe, closed at the end of life. Ends are not inherited unless asked for.
struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

/// Feeds the child and reads both of its streams together: a child that fills one while we wait on another would hang.
void exchange(Pipe& in, const std::string& input, Pipe& out, Pipe& err, CommandResult& result) {
  std::size_t written = 0;
  if (input.empty()) Pipe::close_end(in.write_end);
  std::array<char, 65536> buffer{};
  while (in.write_end >= 0 || out.read_end >= 0 || err.read_end >= 0) {
    std::array<pollfd, 3> waits{{{in.write_end, POLLOUT, 0}, {out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (waits[0].revents != 0) {
      const ssize_t sent = write(in.write_end, input.data() + written, input.size() - written);
      if (sent > 0) written += static_cast<std::size_t>(sent);
      if (sent < 0 || written == input.size()) Pipe::close_end(in.write_end);
    }
    const auto drain = [&buffer](const pollfd& wait, int& end, std::string& text) {
      if (wait.revents == 0) return;
      const ssize_t got = read(end, buffer.data(), buffer.size());
      if (got > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
      } else {
        Pipe::close_end(end);
      }
    };
    drain(waits[1], out.read_end, result.output);
    drain(waits[2], err.read_end, result.error);
  }
}

int wait_for_exit(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments, const std::string& input) {
  CommandResult result;
  Pipe in, out, err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end, STDERR_FILENO);

  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    return {127, "", arguments[0] + ": " + std::system_category().message(failure)};
  }
  Pipe::close_end(in.read_end);
  Pipe::close_end(out.write_end);
  Pipe::close_end(err.write_end);
  // A child that ends before it has read its input must not end us.
  const auto previous = std::signal(SIGPIPE, SIG_IGN);
  exchange(in, input, out, err, result);
  std::signal(SIGPIPE, previous);
  result.exit_code = wait_for_exit(child);
  return result;
}

}  // namespace loadline::testing
