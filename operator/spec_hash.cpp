#include "operator/spec_hash.h"

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace loadline::controller {
namespace {

/// FNV-1a of 64 bits. It tells edits apart and keeps no secret.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 14695981039346656037U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return h;
}

}  // namespace

std::string spec_hash(const kube::Object& stored) {
  nlohmann::json spec = kube::object_at(stored.json(), {"spec"});
  for (const char* field : {"suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished"}) spec.erase(field);
  // Keys are sorted, so the text depends on nothing but the values.
  const std::string text = spec.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  char digits[17];
  (void)std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash(text)));
  return digits;
}

}  // namespace loadline::controller
