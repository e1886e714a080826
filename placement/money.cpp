#include "placement/money.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace loadline::placement {

std::optional<double> parse_money(std::string_view text) {
  constexpr double kMost = 1e12;
  if (text.empty() || text.size() > 32) return std::nullopt;
  if (std::count(text.begin(), text.end(), '.') > 1) return std::nullopt;
  if (text.front() == '.' || text.back() == '.') return std::nullopt;
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  if (!plain) return std::nullopt;
  double amount = 0;
  double scale = 1;
  bool fraction = false;
  for (const char c : text) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    amount = amount * 10 + (c - '0');
    if (fraction) scale *= 10;
  }
  amount /= scale;
  if (!(amount <= kMost)) return std::nullopt;
  return amount;
}

std::string money_number(double amount) {
  if (!std::isfinite(amount)) return "unknown";
  if (amount > 0 && amount < 0.1) {
    const int decimals = std::min(9, static_cast<int>(std::ceil(-std::log10(amount))) + 2);
    return fixed(amount, decimals);
  }
  return fixed(amount, 2);
}

std::string money_text(double amount, std::string_view currency) {
  const std::string number = amount >= 100 && std::isfinite(amount) ? fixed(amount, 0) : money_number(amount);
  return number + " " + std::string(currency);
}

}  // namespace loadline::placement
