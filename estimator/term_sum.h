// The arithmetic behind one term of an estimate, as text: the factors of estimator/quantities.h in the order in
// which the estimate multiplies them, so that a reader gets the same product.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "estimator/estimate.h"
#include "estimator/quantities.h"

namespace loadline::estimator {

/// One phase of an estimate with what it was made from.
struct Sum {
  const Workload& w;
  const Layout& l;
  const PhaseUse& use;
  Quantities q;
};

/// A whole number as it is up to a million, else "8.0303e+09" as "8.0303e9".
[[nodiscard]] std::string number(double v);

/// " / 8"; nothing when there is nothing to divide.
[[nodiscard]] std::string over(double divisor);

/// "fp32 8.0303e9 x 4 B / 8": words may stand between the numbers.
[[nodiscard]] std::string term_sum(const Sum& s, Term term);

}  // namespace loadline::estimator
