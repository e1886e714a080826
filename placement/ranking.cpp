#include "placement/ranking.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace loadline::placement {
namespace {

api::CapacityType capacity_of(const Candidate& candidate) {
  return candidate.pool->capacity_type.value_or(api::CapacityType::OnDemand);
}

// Hours of the run; for a job without a length, hours for a billion tokens.
double hours_of(const Outlook& outlook) {
  if (outlook.hours) return *outlook.hours;
  return outlook.tokens_per_second > 0 ? outlook.slowdown * 1e9 / outlook.tokens_per_second / 3600 : 0;
}

std::optional<double> cost_of(const Outlook& outlook) {
  return outlook.hours ? outlook.cost : outlook.cost_per_billion_tokens;
}

// Spot that costs as much as the same GPU on demand never wins on price: then one of the
// prices is stale, or spot buys nothing but interruptions.
void hold_back_dear_spot(std::vector<std::pair<Score, const Candidate*>>& scored) {
  for (auto& [score, spot] : scored) {
    if (!score.known || score.currency.empty() || capacity_of(*spot) != api::CapacityType::Spot) continue;
    for (const auto& [other_score, other] : scored) {
      const bool comparable = other_score.known && other_score.currency == score.currency &&
                              capacity_of(*other) != api::CapacityType::Spot && other->pool->gpu == spot->pool->gpu &&
                              other->pool->gpu != nullptr;
      if (comparable && spot->pool->price->per_gpu_hour >= other->pool->price->per_gpu_hour) {
        score.value = std::max(score.value, std::nextafter(other_score.value, HUGE_VAL));
      }
    }
  }
}

}  // namespace

Score score_of(const EffectivePolicy& policy, const Candidate& candidate) {
  Score score;
  if (!candidate.outlook) return score;
  score.hours = hours_of(*candidate.outlook);
  if (policy.objective == api::PlacementObjective::Time) {
    score.known = true;
    score.value = score.hours;
    return score;
  }
  const auto cost = cost_of(*candidate.outlook);
  if (!cost) return score;
  score.known = true;
  score.currency = candidate.pool->price->currency;
  score.value = *cost;
  if (policy.objective == api::PlacementObjective::Balanced) score.value += policy.value_per_hour * score.hours;
  return score;
}

bool better_size(const EffectivePolicy& policy, const Candidate& a, const Candidate& b) {
  const auto key = [&](const Candidate& c) {
    const Score score = score_of(policy, c);
    const int stage = c.verdict == Verdict::Refused ? 2 : c.start == Start::Waits ? 1 : 0;
    // Refused for memory says more than refused for another size's count.
    const bool by_memory = c.reason == Reason::InsufficientMemory;
    const std::int64_t need = by_memory ? c.required_mib : 0;
    return std::make_tuple(stage, c.memory_warning, stage == 2 && !by_memory, need, !score.known, score.value,
                           score.hours, c.layout ? c.layout->gpus : 0);
  };
  return key(a) < key(b);
}

void rank(const Request& request, const EffectivePolicy& policy, bool escalated, std::vector<Candidate>& candidates) {
  std::vector<std::pair<Score, const Candidate*>> scored;
  for (const Candidate& candidate : candidates) {
    Score score = candidate.verdict == Verdict::Refused ? Score{} : score_of(policy, candidate);
    if (candidate.pool->name == request.current_pool) score.value *= kStayFactor;
    scored.emplace_back(score, &candidate);
  }
  hold_back_dear_spot(scored);

  const auto key = [&](const std::pair<Score, const Candidate*>& entry) {
    const auto& [score, c] = entry;
    const int stage = c->verdict == Verdict::Refused ? 2 : c->start == Start::Waits ? 1 : 0;
    const bool not_target = escalated && capacity_of(*c) != policy.spot.escalate_to;
    // Sums in different currencies are not compared: the policy's own goes first, the others by name.
    const bool foreign = !score.currency.empty() && score.currency != policy.currency;
    // Of the refused those that came closest go first.
    const bool unsized = stage == 2 && c->required_mib <= 0;
    const std::int64_t shortage = stage == 2 ? std::max<std::int64_t>(0, c->required_mib - c->usable_mib) : 0;
    return std::make_tuple(stage, unsized, shortage, not_target, c->memory_warning, !score.known, foreign,
                           score.currency, score.value, score.hours, c->layout ? c->layout->gpus : 0, c->pool->name);
  };
  std::vector<std::size_t> order(candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(scored[a]) < key(scored[b]); });
  std::vector<Candidate> sorted;
  sorted.reserve(candidates.size());
  for (const std::size_t i : order) sorted.push_back(candidates[i]);
  candidates = std::move(sorted);
}

}  // namespace loadline::placement
