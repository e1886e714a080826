// kubectl-loadline: also found by kubectl as the plugin `kubectl loadline`.
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return loadline::cli::run(arguments, {std::cin, std::cout, std::cerr, now});
}
