// A pocket calculator for explanation lines: numbers, x, /, +, -, parentheses; words between
// them are skipped, as a reader would.
#pragma once

#include <cctype>
#include <cstdlib>
#include <string>

namespace loadline::estimator {

class PocketCalculator {
 public:
  explicit PocketCalculator(const std::string& text) : text_(text) {}

  double result() { return sum(); }

 private:
  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == ',') {
        ++at_;
      } else if (std::isalpha(static_cast<unsigned char>(c)) != 0 && !(c == 'x' && text_.substr(at_, 2) == "x ")) {
        while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != ')' && text_[at_] != '(') ++at_;
      } else if (text_.substr(at_ + 1, 4) == "-bit") {
        at_ += 5;
      } else {
        return;
      }
    }
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  double sum() {
    double value = product();
    for (;;) {
      if (take('+')) {
        value += product();
      } else if (take('-')) {
        value -= product();
      } else {
        return value;
      }
    }
  }
  double product() {
    double value = operand();
    for (;;) {
      if (take('x')) {
        value *= operand();
      } else if (take('/')) {
        value /= operand();
      } else {
        return value;
      }
    }
  }
  double operand() {
    if (take('(')) {
      const double value = sum();
      take(')');
      return value;
    }
    skip();
    char* end = nullptr;
    const double value = std::strtod(text_.c_str() + at_, &end);
    at_ = static_cast<std::size_t>(end - text_.c_str());
    return value;
  }

  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace loadline::estimator
