#include "placement/not_enforced.h"

#include <algorithm>

#include "estimator/explain.h"
#include "placement/explain.h"
#include "placement/words.h"

namespace loadline::placement {
namespace {

// What comes of the job, as far as a policy has a say in it.
std::string course(const Plan& plan) {
  const Candidate* best = plan.best();
  if (best == nullptr) return plan.outcome == Outcome::Waiting ? "wait, as no pool could run it now" : "be refused";
  std::string text = (plan.outcome == Outcome::Waiting ? "wait for " : "run on ") + where_text(*best) + ", " +
                     estimator::layout_text(*best->layout);
  if (plan.checkpoint.claim.empty()) return text;
  text += "; " + checkpoint_words(plan, *best);
  return plan.checkpoint.existing ? text : text + ", " + std::string(api::name_of(plan.checkpoint.retain));
}

bool refuses(const Plan& plan, const Pool& pool) {
  return std::any_of(plan.ranked.begin(), plan.ranked.end(), [&](const Candidate& candidate) {
    return candidate.pool->name == pool.name && candidate.verdict == Verdict::Refused;
  });
}

}  // namespace

std::vector<std::string> not_enforced(const Plan& plan, const Plan& enforced) {
  const std::string mode = "mode " + std::string(api::name_of(plan.policy.mode));
  const std::string suffix = " (" + mode + ", not enforced)";
  std::vector<std::string> lines;
  if (course(plan) != course(enforced)) {
    lines.push_back("if " + plan.policy.called() + " were enforced (" + mode + "), the job would " + course(enforced));
  }
  for (const Candidate& candidate : enforced.ranked) {
    if (candidate.verdict != Verdict::Refused || refuses(plan, *candidate.pool)) continue;
    lines.push_back(candidate.pool->name + ": " + candidate.detail + suffix);
  }
  for (const std::string& note : enforced.notes) {
    if (std::find(plan.notes.begin(), plan.notes.end(), note) == plan.notes.end()) lines.push_back(note + suffix);
  }
  return lines;
}

}  // namespace loadline::placement
