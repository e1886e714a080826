// The program kubectl-loadline, less main(): arguments in, text and an exit code out.
//
// Thread-safety: one call at a time. Errors: none leaves run(); the exit code says it:
//   0 every job fits (also when it would have to wait), 1 some job does not, 2 bad input.
#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "base/text.h"

namespace loadline::cli {

/// What the program touches of the outside world, besides files.
struct Surroundings {
  std::istream& input;
  std::ostream& output;
  std::ostream& errors;
  TimePoint now;
};

/// `arguments` without the program's name.
[[nodiscard]] int run(const std::vector<std::string>& arguments, const Surroundings& around);

}  // namespace loadline::cli
