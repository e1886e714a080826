// Files that people pass to kubectl-loadline.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/inputs.h"
#include "cli/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifests = loadline::cli::manifests_in(std::string(text), "fuzz");
  if (manifests) (void)loadline::cli::inputs_from(*manifests);
  return 0;
}
