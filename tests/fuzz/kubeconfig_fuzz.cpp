// kubeconfig files. Whatever they hold is read or refused with a message; no plugin is run and no server is called.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "kube/config.h"

using namespace loadline;  // NOLINT(google-build-using-namespace)

namespace {

/// A file in memory that is read by its path like any other.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(::memfd_create("kubeconfig", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  kube::ConfigOptions options;
  options.kubeconfig = file.path();
  options.environment = [](const std::string&) { return std::optional<std::string>(); };
  const Result<kube::ClusterConfig> config = kube::kubeconfig(options);
  if (!config && config.error().message.empty()) std::abort();
  if (config && (config->server.empty() || config->auth == nullptr)) std::abort();
  return 0;
}
