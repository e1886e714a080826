// Pieces of sentences that warnings, explanations, refusals and status share.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "placement/plan.h"

namespace loadline::placement {

/// "1 node", "2 nodes".
[[nodiscard]] std::string counted(std::int64_t count, const std::string& noun);
/// MiB as GiB without the unit: "78.2".
[[nodiscard]] std::string gib_of_mib(std::int64_t mib);
/// Hours as a person would say: "31 h", "40 min".
[[nodiscard]] std::string hours_text(double hours);
/// "spot", "on-demand"; with no marker "on-demand (no label says otherwise)".
[[nodiscard]] std::string capacity_text(const Pool& pool);
/// "31 h and 412 USD", "31 h, price unknown", "12 400 tokens/s and 29.36 USD per hour", or why it is unknown.
[[nodiscard]] std::string outlook_text(const Candidate& candidate);
/// The checkpoint claim the job gets on this pool, and how often one is written.
[[nodiscard]] std::string checkpoint_words(const Plan& plan, const Candidate& best);
/// "a: why; b, c: why; and 4 more pools": pools with the very same words share them.
[[nodiscard]] std::string pools_and_why(const std::vector<const Candidate*>& candidates);
/// The candidate that the sizing is told of: the best, else the refused one that came closest. Null when none was
/// sized.
[[nodiscard]] const Candidate* sized_candidate(const Plan& plan);

}  // namespace loadline::placement
