#include "placement/words.h"

#include <algorithm>
#include <cmath>

#include "placement/money.h"

namespace loadline::placement {
namespace {

constexpr std::size_t kPoolsNamed = 3;

}  // namespace

std::string counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string gib_of_mib(std::int64_t mib) { return fixed(static_cast<double>(mib) / 1024, 1); }

std::string hours_text(double hours) { return duration_text(hours * 3600); }

std::string capacity_text(const Pool& pool) {
  if (!pool.capacity_type) return "on-demand (no label says otherwise)";
  return std::string(api::name_of(*pool.capacity_type));
}

std::string outlook_text(const Candidate& candidate) {
  if (!candidate.outlook) return "time unknown: " + candidate.speed_unknown;
  const Outlook& outlook = *candidate.outlook;
  const auto& price = candidate.pool->price;
  if (outlook.hours) {
    const std::string hours = hours_text(*outlook.hours);
    if (!price) return hours + ", price unknown";
    if (price->owned && price->per_gpu_hour <= 0) return hours + " on hardware that is owned";
    return hours + " and " + money_text(*outlook.cost, price->currency);
  }
  const std::string rate = fixed(outlook.tokens_per_second, 0) + " tokens/s";
  if (!price) return rate + ", price unknown";
  return rate + " and " + money_text(*candidate.price_per_hour, price->currency) + " per hour";
}

const Candidate* sized_candidate(const Plan& plan) {
  if (plan.best() != nullptr) return plan.best();
  const Candidate* closest = nullptr;
  for (const Candidate& candidate : plan.ranked) {
    if (!candidate.layout || candidate.required_mib <= 0) continue;
    const auto shortage = [](const Candidate& c) { return c.required_mib - c.usable_mib; };
    if (closest == nullptr || shortage(candidate) < shortage(*closest)) closest = &candidate;
  }
  return closest;
}

std::string checkpoint_words(const Plan& plan, const Candidate& best) {
  const CheckpointPlan& checkpoint = plan.checkpoint;
  const std::string every =
      best.interval.seconds > 0 ? ", one write every " + duration_text(best.interval.seconds) : std::string();
  if (checkpoint.existing) {
    return "checkpoint claim " + checkpoint.claim + " (yours): " + gib(checkpoint.size.total_bytes) + " a checkpoint" +
           every;
  }
  return "checkpoint claim " + checkpoint.claim + ": " + gib(checkpoint.bytes, 0) + " in " +
         checkpoint.storage_class.value_or("the default class") + every;
}

std::string pools_and_why(const std::vector<const Candidate*>& candidates) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_words;
  for (const Candidate* candidate : candidates) {
    auto found = std::find_if(by_words.begin(), by_words.end(),
                              [&](const auto& pair) { return pair.first == candidate->detail; });
    if (found == by_words.end()) found = by_words.insert(by_words.end(), {candidate->detail, {}});
    found->second.push_back(candidate->pool->name);
  }
  std::vector<std::string> parts;
  std::size_t left_out = 0;
  for (const auto& [words, pools] : by_words) {
    if (parts.size() < kPoolsNamed) {
      const std::vector<std::string> named(
          pools.begin(), pools.begin() + static_cast<std::ptrdiff_t>(std::min(pools.size(), 2 * kPoolsNamed)));
      const std::string more =
          named.size() < pools.size() ? " and " + std::to_string(pools.size() - named.size()) + " more" : "";
      parts.push_back(join(named, ", ") + more + ": " + words);
    } else {
      left_out += pools.size();
    }
  }
  if (left_out > 0) parts.push_back("and " + counted(static_cast<std::int64_t>(left_out), "more pool"));
  return join(parts, "; ");
}

}  // namespace loadline::placement
