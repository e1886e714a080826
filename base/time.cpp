#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace loadline {
namespace {

std::string civil(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(seconds - day);
  std::array<char, 48> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return buffer.data();
}

// Exactly `width` digits at `at`, moving `at` behind them; -1 when they are not there.
int digits(std::string_view text, std::size_t& at, std::size_t width) {
  if (at + width > text.size()) return -1;
  int value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const char c = text[at + i];
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  at += width;
  return value;
}

bool literal(std::string_view text, std::size_t& at, char wanted) {
  if (at >= text.size() || text[at] != wanted) return false;
  ++at;
  return true;
}

}  // namespace

std::string rfc3339(TimePoint time) { return civil(time) + "Z"; }

std::string rfc3339_micro(TimePoint time) {
  const auto within = time - std::chrono::floor<std::chrono::seconds>(time);
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), ".%06dZ", static_cast<int>(within.count() * 1000));
  return civil(time) + buffer.data();
}

std::optional<TimePoint> parse_rfc3339(std::string_view text) {
  std::size_t at = 0;
  const int year = digits(text, at, 4);
  if (!literal(text, at, '-')) return std::nullopt;
  const int month = digits(text, at, 2);
  if (!literal(text, at, '-')) return std::nullopt;
  const int day = digits(text, at, 2);
  if (!literal(text, at, 'T')) return std::nullopt;
  const int hour = digits(text, at, 2);
  if (!literal(text, at, ':')) return std::nullopt;
  const int minute = digits(text, at, 2);
  if (!literal(text, at, ':')) return std::nullopt;
  const int second = digits(text, at, 2);
  if (year < 0 || month < 1 || day < 1 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  int millis = 0;
  if (literal(text, at, '.')) {
    int scale = 100;
    std::size_t seen = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      millis += (text[at] - '0') * scale;
      scale /= 10;
      ++at;
      ++seen;
    }
    if (seen == 0 || seen > 9) return std::nullopt;
  }
  int offset_minutes = 0;
  if (!literal(text, at, 'Z')) {
    if (at >= text.size() || (text[at] != '+' && text[at] != '-')) return std::nullopt;
    const int sign = text[at++] == '-' ? -1 : 1;
    const int offset_hour = digits(text, at, 2);
    if (!literal(text, at, ':')) return std::nullopt;
    const int offset_minute = digits(text, at, 2);
    if (offset_hour < 0 || offset_minute < 0) return std::nullopt;
    offset_minutes = sign * (offset_hour * 60 + offset_minute);
  }
  if (at != text.size()) return std::nullopt;
  return TimePoint(std::chrono::sys_days(date)) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + std::chrono::milliseconds(millis) - std::chrono::minutes(offset_minutes);
}

}  // namespace loadline
