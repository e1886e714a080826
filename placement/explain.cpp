// Warnings at apply, and the explanation of a placement.
#include "placement/explain.h"

#include <algorithm>
#include <cmath>

#include "estimator/explain.h"
#include "placement/money.h"
#include "placement/words.h"

namespace loadline::placement {
namespace {

constexpr std::size_t kWarningBytes = 256;
constexpr std::size_t kLineBytes = 400;
constexpr std::size_t kLines = 24;
constexpr std::size_t kOptionLines = 10;

std::string sum_of_cost(const Candidate& candidate) {
  const Outlook& outlook = *candidate.outlook;
  const auto& price = candidate.pool->price;
  std::string text;
  if (price && outlook.cost) {
    text = money_text(*outlook.cost, price->currency) + " = " + fixed(*outlook.hours, 2) + " h x " +
           std::to_string(candidate.layout->gpus) + " GPUs x " + money_number(price->per_gpu_hour) + " " +
           price->currency + "; ";
  }
  return text + fixed(*outlook.hours, 2) + " h = " + fixed(*outlook.work_hours, 2) + " h of work x " +
         fixed(outlook.slowdown, 3) + " for checkpoints and " + fixed(*outlook.interruptions, 1) +
         " interruptions (one per " + duration_text(outlook.mean_between_seconds) + ", " +
         duration_text(outlook.restart_seconds) + " to restart)";
}

// The other capacity type of the same GPU, for the comparison in the third warning.
const Candidate* other_capacity(const Plan& plan, const Candidate& best) {
  for (const Candidate& candidate : plan.ranked) {
    if (&candidate == &best || candidate.verdict == Verdict::Refused || !candidate.outlook) continue;
    if (candidate.pool->gpu == best.pool->gpu && candidate.pool->capacity_type != best.pool->capacity_type) {
      return &candidate;
    }
  }
  return nullptr;
}

std::string expectation(const Plan& plan, const Candidate& best) {
  if (!best.outlook) return outlook_text(best);
  const Outlook& outlook = *best.outlook;
  std::string text = outlook_text(best);
  if (!outlook.hours) {
    if (outlook.cost_per_billion_tokens) {
      text += ", " + money_text(*outlook.cost_per_billion_tokens, best.pool->price->currency) + " per 1e9 tokens";
    }
    return text + "; no total without spec.training.tokens, steps or epochs";
  }
  text = "expected " + text + " (" + hours_text(*outlook.work_hours) + " of work, " + fixed(*outlook.interruptions, 1) +
         " interruptions)";
  const Candidate* other = other_capacity(plan, best);
  if (other != nullptr && other->outlook->cost && outlook.cost &&
      other->pool->price->currency == best.pool->price->currency) {
    text += "; " + capacity_text(*other->pool) + " would be " +
            money_text(*other->outlook->cost, other->pool->price->currency);
  }
  if (best.pool->price && best.pool->price->as_of) {
    text += "; prices of " + *best.pool->price->as_of;
    if (best.pool->price->stale()) text += " (" + std::to_string(*best.pool->price->age_days) + " days old)";
  }
  return text;
}

std::string room(const Candidate& candidate) {
  if (candidate.usable_mib <= 0) return "usable memory unknown";
  const std::int64_t peak = (candidate.estimate.peak_bytes + kMiB - 1) / kMiB;
  const std::int64_t left = candidate.usable_mib - peak;
  return "usable " + gib_of_mib(candidate.usable_mib) + " GiB, " +
         (left >= 0 ? gib_of_mib(left) + " free" : gib_of_mib(-left) + " short");
}

std::string destination(const Plan& plan, const Candidate& best) {
  const std::string where = where_text(best) + "; " + room(best);
  if (plan.outcome == Outcome::Waiting) return "will wait for " + where + "; " + best.detail;
  if (best.start == Start::ScaleUp) return "will run on " + where + "; " + best.detail;
  return "will run on " + where;
}

std::string memory_warning(const Plan& plan, const Candidate& best) {
  if (best.estimate.lower_bound_only) {
    return "memory is a lower bound (only a parameter count is known): not enforced; give a preset or a config to have "
           "it checked";
  }
  if (best.usable_mib <= 0) return "memory of " + best.pool->name + " is not known: nothing was checked";
  return "does not fit by the estimate: needs " + gib_of_mib(best.required_mib) + " GiB with margin, usable " +
         gib_of_mib(best.usable_mib) + "; let through by memory enforcement " +
         std::string(api::name_of(plan.policy.sizing.enforcement));
}

// Why the best one is the best, in half a sentence.
std::string why_best(const Request& request, const Plan& plan, const Candidate& best) {
  std::int64_t fitting = 0;
  for (const Candidate& candidate : plan.ranked) fitting += candidate.verdict == Verdict::Refused ? 0 : 1;
  const bool spot_left = std::any_of(plan.ranked.begin(), plan.ranked.end(),
                                     [](const Candidate& c) { return c.reason == Reason::Escalated; });
  if (spot_left) {
    std::int64_t seen = 0;
    double node_hours = 0;
    for (const auto& [name, history] : request.history) {
      seen += history.preemptions;
      node_hours += history.node_hours;
    }
    return "moved off spot after " + counted(seen, "interruption") + " in " + fixed(node_hours, 1) + " node-hours";
  }
  if (fitting == 1) return "the only pool that fits";
  if (!best.outlook) return "the best of " + std::to_string(fitting) + " that fit, as far as known";
  switch (plan.policy.objective) {
    case api::PlacementObjective::Time: return "soonest to finish of " + std::to_string(fitting) + " that fit";
    case api::PlacementObjective::Balanced:
      return "best balance of cost and time of " + std::to_string(fitting) + " that fit (an hour is worth " +
             money_text(plan.policy.value_per_hour, plan.policy.currency) + ")";
    case api::PlacementObjective::Cost: break;
  }
  if (!best.pool->price) return "soonest of " + std::to_string(fitting) + " that fit; prices are unknown";
  return "cheapest to finish of " + std::to_string(fitting) + " that fit";
}

std::string moved_from(const Request& request, const Plan& plan, const Candidate& best) {
  if (request.current_pool.empty()) return "";
  if (request.current_pool == best.pool->name) return "; stays there";
  for (const Candidate& candidate : plan.ranked) {
    if (candidate.pool->name != request.current_pool) continue;
    if (candidate.reason == Reason::Escalated) return "";  // said already
    if (candidate.verdict == Verdict::Refused || candidate.start == Start::Waits) {
      return "; moved from " + request.current_pool + ": " + candidate.detail;
    }
    const std::string now_takes = candidate.outlook ? " now takes " + outlook_text(candidate) : " ranks lower now";
    return "; moved from " + request.current_pool + ", which" + now_takes;
  }
  return "; moved from " + request.current_pool + ", which is gone";
}

std::string difference(const Candidate& candidate, const Candidate& best) {
  if (!candidate.outlook || !best.outlook) return "";
  const Outlook& a = *candidate.outlook;
  const Outlook& b = *best.outlook;
  if (a.cost && b.cost && candidate.pool->price->currency == best.pool->price->currency) {
    const double more = *a.cost - *b.cost;
    return std::string(more >= 0 ? ": dearer by " : ": cheaper by ") +
           money_text(std::abs(more), best.pool->price->currency);
  }
  if (a.hours && b.hours && std::abs(*a.hours - *b.hours) > 0) {
    return std::string(*a.hours >= *b.hours ? ": longer by " : ": shorter by ") +
           hours_text(std::abs(*a.hours - *b.hours));
  }
  return "";
}

std::string option_line(const Candidate& candidate, const Candidate* best) {
  const std::string& name = candidate.pool->name;
  if (candidate.verdict == Verdict::Refused) return name + ": refused, " + candidate.detail;
  const std::string size = std::to_string(candidate.layout->gpus) + " GPUs, ";
  const std::string rest = size + outlook_text(candidate) + (best != nullptr ? difference(candidate, *best) : "");
  if (candidate.start == Start::Waits) return name + ": fits but waits, " + rest + "; " + candidate.detail;
  return name + ": fits, " + rest;
}

std::string step_line(const Request& request, const Candidate& candidate) {
  const auto step = estimator::step_time(request.workload, *candidate.layout, candidate.pool->machine());
  return step ? estimator::step_time_text(*step) : std::string();
}

}  // namespace

std::string where_text(const Candidate& candidate) {
  const Pool& pool = *candidate.pool;
  if (!candidate.layout) return pool.name;
  const std::int64_t nodes = candidate.layout->nodes();
  const std::int64_t each = nodes > 0 ? candidate.layout->gpus / nodes : candidate.layout->gpus;
  std::string text = pool.name + ": " + counted(nodes, "node") + " x " + counted(each, "GPU");
  if (candidate.layout->gpus > 1) text += ", " + pool.link_text();
  if (!candidate.zone.empty()) text += ", zone " + candidate.zone;
  return text;
}

std::vector<std::string> apply_warnings(const Request& request, const Plan& plan) {
  std::vector<std::string> lines;
  const Candidate* sized = sized_candidate(plan);
  if (sized != nullptr) lines.push_back(estimator::summary(request.workload, *sized->layout, sized->estimate));
  if (const Candidate* best = plan.best()) {
    lines.push_back(destination(plan, *best));
    lines.push_back(expectation(plan, *best));
    if (!plan.checkpoint.claim.empty()) {
      lines.push_back(checkpoint_words(plan, *best));
    } else {
      lines.emplace_back("keeps no checkpoint: an interruption loses all work; spec.checkpoint: {} gives it a volume");
    }
    if (best->memory_warning) lines.push_back(memory_warning(plan, *best));
  } else {
    lines.push_back(outcome_message(request, plan));
  }
  lines.insert(lines.end(), plan.notes.begin(), plan.notes.end());
  for (std::string& line : lines) line = cut_utf8(line, kWarningBytes);
  return lines;
}

std::vector<std::string> placement_explanation(const Request& request, const Plan& plan) {
  std::vector<std::string> lines;
  const Candidate* best = plan.best();
  if (best != nullptr) {
    const std::string verb = plan.outcome == Outcome::Waiting ? "Waits for " : "On ";
    lines.push_back(verb + best->pool->name + " (" + capacity_text(*best->pool) +
                    "): " + why_best(request, plan, *best) + moved_from(request, plan, *best));
    lines.push_back(where_text(*best) + "; " + room(*best));
    if (!best->detail.empty()) lines.push_back(best->detail);
    if (best->outlook && best->outlook->hours) lines.push_back(sum_of_cost(*best));
    if (best->outlook && !best->outlook->hours) lines.push_back(expectation(plan, *best));
    if (!best->outlook) lines.push_back(outlook_text(*best));
    if (const std::string step = step_line(request, *best); !step.empty()) lines.push_back(step);
    if (best->memory_warning) lines.push_back(memory_warning(plan, *best));
  } else {
    lines.push_back(plan.ranked.empty()
                        ? "No GPU pool is known: neither a GPUPool nor a node with GPUs"
                        : "No pool can run it" + std::string(plan.outcome == Outcome::Waiting ? " now" : ""));
  }
  std::size_t told = 0;
  for (const Candidate& candidate : plan.ranked) {
    if (&candidate == best) continue;
    if (told++ < kOptionLines) lines.push_back(option_line(candidate, best));
  }
  if (told > kOptionLines)
    lines.push_back("and " + counted(static_cast<std::int64_t>(told - kOptionLines), "more pool"));
  lines.insert(lines.end(), plan.notes.begin(), plan.notes.end());
  lines.insert(lines.end(), plan.dry_run.begin(), plan.dry_run.end());
  if (lines.size() > kLines) lines.resize(kLines);
  for (std::string& line : lines) line = cut_utf8(line, kLineBytes);
  return lines;
}

std::string outcome_reason(const Plan& plan) {
  const Candidate* best = plan.best();
  if (plan.outcome == Outcome::Placed) return best->start == Start::ScaleUp ? "ScalingUp" : "Placed";
  if (plan.ranked.empty()) return "NoPools";
  if (best != nullptr) return std::string(reason_name(best->reason));
  // The reason that most pools share; ties go to the first ranked.
  const Candidate* common = nullptr;
  std::ptrdiff_t most = 0;
  for (const Candidate& candidate : plan.ranked) {
    const bool counts = plan.outcome == Outcome::Unplaceable || may_pass(candidate.reason);
    const auto same = std::count_if(plan.ranked.begin(), plan.ranked.end(),
                                    [&](const Candidate& other) { return other.reason == candidate.reason; });
    if (counts && same > most) {
      common = &candidate;
      most = same;
    }
  }
  return std::string(reason_name(common != nullptr ? common->reason : plan.ranked.front().reason));
}

std::string outcome_message(const Request& request, const Plan& plan) {
  constexpr std::size_t kMessageBytes = 1024;
  if (const Candidate* best = plan.best()) {
    const std::string where = where_text(*best);
    std::string text = plan.outcome == Outcome::Waiting ? "waits for " + where + ": " + best->detail
                       : best->start == Start::ScaleUp  ? "on " + where + "; " + best->detail
                                                        : "on " + where + " (" + why_best(request, plan, *best) + ")";
    return cut_utf8(text, kMessageBytes);
  }
  if (plan.ranked.empty()) return "waits for GPUs: no GPUPool and no node with GPUs is known";
  const std::string verdict = plan.outcome == Outcome::Waiting ? "no pool can run it now: " : "no pool can run it: ";
  std::vector<const Candidate*> all;
  for (const Candidate& candidate : plan.ranked) all.push_back(&candidate);
  return cut_utf8(verdict + pools_and_why(all), kMessageBytes);
}

}  // namespace loadline::placement
