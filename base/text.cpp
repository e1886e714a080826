#include "base/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/saturating.h"

namespace loadline {

std::string fixed(double value, int decimals) {
  std::array<char, 64> buffer{};
  const int n = std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  if (n < 0) return "?";
  if (static_cast<std::size_t>(n) >= buffer.size()) return scientific(value);
  return {buffer.data(), static_cast<std::size_t>(n)};
}

std::string scientific(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.2e", value);
  std::string text(buffer.data());
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  std::string mantissa = text.substr(0, e);
  std::string exponent = text.substr(e + 1);
  const bool negative = exponent.front() == '-';
  exponent.erase(0, exponent.find_first_of("123456789"));
  if (exponent.empty()) exponent = "0";
  return mantissa + "e" + (negative ? "-" : "") + exponent;
}

std::string gib_number(std::int64_t bytes, int decimals) {
  return fixed(static_cast<double>(bytes) / static_cast<double>(kGiB), decimals);
}

std::string gib(std::int64_t bytes, int decimals) {
  if (bytes == kSaturated) return "more than 8 EiB";
  return gib_number(bytes, decimals) + " GiB";
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  constexpr double kMinute = 60;
  constexpr double kHour = 60 * kMinute;
  constexpr double kDay = 24 * kHour;
  if (seconds < 1.5 * kMinute) return fixed(seconds, 0) + " s";
  if (seconds < 1.5 * kHour) return fixed(seconds / kMinute, 0) + " min";
  if (seconds < 10 * kHour) return fixed(seconds / kHour, 1) + " h";
  if (seconds < 4 * kDay) return fixed(seconds / kHour, 0) + " h";
  return fixed(seconds / kDay, 1) + " d";
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) out += separator;
    out += part;
  }
  return out;
}

std::string cut_utf8(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  constexpr std::string_view kMark = "...";
  if (max_bytes <= kMark.size()) return std::string(max_bytes, '.');
  std::size_t end = max_bytes - kMark.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + std::string(kMark);
}

}  // namespace loadline
