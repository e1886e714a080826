// The objects in files, directories and standard input, as `kubectl -f` takes them.
//
// Thread-safety: reads files; no shared state.
// Errors: values with the file's name; a file above 8 MiB is refused.
#pragma once

#include <istream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace loadline::cli {

/// One object and where it was read.
struct Manifest {
  std::string source;  ///< "jobs/llama.yaml", or "standard input"
  nlohmann::json object;
};

/// Reads each path: a file, "-" for `standard_input`, or a directory, of which the *.yaml, *.yml
/// and *.json directly in it are read in the order of their names. Lists are opened up.
[[nodiscard]] Result<std::vector<Manifest>> read_manifests(const std::vector<std::string>& paths,
                                                           std::istream& standard_input);

/// The objects in a text that was read from `source`.
[[nodiscard]] Result<std::vector<Manifest>> manifests_in(const std::string& text, const std::string& source);

}  // namespace loadline::cli
