#include "operator/names.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace loadline::controller {
namespace {

/// Room for "-a9999-9999" in a label of 63.
constexpr std::size_t kLongestStem = 63 - 11;
constexpr std::size_t kHashDigits = 8;

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

/// RFC 1035 label: what a Service may be called.
bool is_label(const std::string& name) {
  return !name.empty() && lower(name.front()) && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) { return lower(c) || digit(c) || c == '-'; });
}

/// FNV-1a; stable over processes and versions, which std::hash is not.
std::uint32_t hash(const std::string& text) {
  std::uint32_t h = 2166136261U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 16777619U;
  return h;
}

}  // namespace

std::string stem(const std::string& job_name) {
  if (job_name.size() <= kLongestStem && is_label(job_name)) return job_name;
  std::string text = job_name;
  for (char& c : text) {
    if (!lower(c) && !digit(c)) c = '-';
  }
  if (text.empty() || !lower(text.front())) text.insert(0, "tj-");
  text.resize(std::min(text.size(), kLongestStem - kHashDigits - 1));
  while (!text.empty() && text.back() == '-') text.pop_back();
  char digits[kHashDigits + 1];
  (void)std::snprintf(digits, sizeof digits, "%08x", hash(job_name));
  return text + "-" + digits;
}

std::string service_name(const std::string& job_name) { return stem(job_name); }

std::string attempt_job_name(const std::string& job_name, std::int64_t n) {
  return stem(job_name) + "-a" + std::to_string(n);
}

std::string plan_config_name(const std::string& job_name, std::int64_t n) {
  return attempt_job_name(job_name, n) + "-plan";
}

std::string checkpoint_claim_name(const std::string& job_name) { return stem(job_name) + "-checkpoint"; }

std::string master_address(const std::string& job_name, const std::string& ns, std::int64_t n) {
  return attempt_job_name(job_name, n) + "-0." + service_name(job_name) + "." + ns + ".svc";
}

}  // namespace loadline::controller
