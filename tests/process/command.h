// Runs another program to its end and keeps what it said.
//
// Thread-safety: run_command may be called from several threads at once.
// Errors: a program that cannot be started has exit code 127 and the reason in `error`.
#pragma once

#include <string>
#include <vector>

namespace loadline::testing {

struct CommandResult {
  int exit_code = 0;   ///< 128 + signal number when a signal ended it
  std::string output;  ///< standard output
  std::string error;   ///< standard error

  [[nodiscard]] bool ok() const { return exit_code == 0; }
};

/// `arguments[0]` is looked up on PATH. `input` becomes its standard input.
[[nodiscard]] CommandResult run_command(const std::vector<std::string>& arguments, const std::string& input = {});

}  // namespace loadline::testing
