#include "kube/system_cas.h"

#include <array>
#include <cstdlib>
#include <optional>

namespace loadline::kube {
namespace {

constexpr std::array<const char*, 2> kNames{"SSL_CERT_FILE", "SSL_CERT_DIR"};

// What each variable was before; nullopt for one that was not set.
std::map<std::string, std::optional<std::string>>& hidden() {
  static std::map<std::string, std::optional<std::string>> values;
  return values;
}

}  // namespace

void hide_system_cas() {
  for (const char* name : kNames) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): documented to come before any thread
    hidden()[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
    setenv(name, "/dev/null", 1);  // NOLINT(concurrency-mt-unsafe)
  }
}

void show_system_cas(std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : hidden()) {
    if (value) {
      environment[name] = *value;
    } else {
      environment.erase(name);
    }
  }
}

}  // namespace loadline::kube
