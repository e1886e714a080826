// Amounts of money: read strictly, printed once and for all the same way.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace loadline::placement {

/// A decimal such as "1.25" (digits, at most one point); nothing for signs, exponents,
/// commas, NaN, blanks, and nothing above 1e12.
[[nodiscard]] std::optional<double> parse_money(std::string_view text);

/// Two decimals, or three significant digits below 0.1: "412.00", "1.25", "0.0345".
[[nodiscard]] std::string money_number(double amount);
/// For sentences: whole above 100 ("412 USD"), else two decimals ("3.67 USD").
[[nodiscard]] std::string money_text(double amount, std::string_view currency);

}  // namespace loadline::placement
