// A plan as status: numbers for machines beside the lines for people.
#include <algorithm>
#include <cmath>

#include "base/saturating.h"
#include "estimator/explain.h"
#include "placement/explain.h"
#include "placement/job_check.h"
#include "placement/money.h"
#include "placement/outlook.h"
#include "placement/words.h"

namespace loadline::placement {
namespace {

constexpr std::size_t kOptions = 10;
constexpr std::size_t kDetailBytes = 400;

// Dividing by the scale, not multiplying by a fraction: 13.29 stays 13.29 and does not become 13.290000000000001.
double rounded(double value, double parts) { return std::isfinite(value) ? std::round(value * parts) / parts : 0; }

std::int64_t mib_up(std::int64_t bytes) { return ceil_div(std::max<std::int64_t>(0, bytes), kMiB); }

std::string gate_line(const Plan& plan, const Candidate& candidate) {
  const EffectivePolicy::Sizing& sizing = plan.policy.sizing;
  const std::string enforcement(api::name_of(sizing.enforcement));
  if (candidate.estimate.lower_bound_only) return "Gate: a lower bound is never enforced";
  std::string text = "Gate (" + enforcement + "): ";
  if (sizing.override_mib) {
    text += gib_of_mib(candidate.required_mib) + " GiB by spec.memory.overrideMiBPerGPU";
  } else {
    text += gib(candidate.estimate.peak_bytes) + " + " + std::to_string(sizing.margin_percent) +
            " % margin = " + gib_of_mib(candidate.required_mib) + " GiB";
  }
  if (candidate.usable_mib <= 0) return text + "; usable on " + candidate.pool->name + " is unknown";
  return text + (candidate.required_mib <= candidate.usable_mib ? " <= " : " > ") + gib_of_mib(candidate.usable_mib) +
         " usable on " + candidate.pool->name + " (" + candidate.pool->memory_source + ")";
}

// What the outlook takes for granted on this pool, each said once.
std::vector<std::string> outlook_assumptions(const Plan& plan, const Candidate& candidate) {
  std::vector<std::string> out;
  const Pool& pool = *candidate.pool;
  if (!pool.reclaims_per_node_hour && pool.capacity_type == api::CapacityType::Spot) {
    out.push_back("spot is reclaimed once per " + fixed(kAssumedSpotHours, 0) + " h and gang until " + pool.name +
                  " shows otherwise");
  }
  if (!pool.capacity_type) out.push_back(pool.name + " is on-demand: no label or GPUPool says otherwise");
  if (pool.interconnect == api::Interconnect::Unknown && candidate.layout && candidate.layout->gpus > 1) {
    out.push_back("GPUs of " + pool.name + " are linked by PCIe at least: their link is not known");
  }
  if (!pool.write_mib_per_s && !plan.checkpoint.claim.empty()) {
    out.push_back("checkpoints are written at " + fixed(estimator::kAssumedWriteMiBps, 0) +
                  " MiB/s: the pool does not say what its storage takes");
  }
  return out;
}

// What the trainer is given when its newest checkpoint cannot be looked up for it.
std::vector<std::string> checkpoint_assumptions(const Request& request, const Plan& plan) {
  if (plan.checkpoint.claim.empty() || names_command(request.job.spec.podTemplate)) return {};
  return {
      "The trainer finds its newest checkpoint by itself: the template names no command to look it up before, so "
      "LOADLINE_RESUME_FROM is the directory of all checkpoints"};
}

api::PlacementOption option(const Candidate& candidate) {
  api::PlacementOption out;
  out.pool = candidate.pool->name;
  out.verdict = candidate.verdict;
  out.reason = std::string(reason_name(candidate.reason));
  out.detail = candidate.detail;
  if (candidate.verdict != Verdict::Refused) {
    out.detail = outlook_text(candidate) + (candidate.detail.empty() ? "" : "; " + candidate.detail);
  }
  out.detail = cut_utf8(out.detail, kDetailBytes);
  if (candidate.layout) {
    out.gpus = candidate.layout->gpus;
    out.layout = estimator::layout_text(*candidate.layout);
    if (candidate.required_mib > 0) out.requiredMiBPerGPU = candidate.required_mib;
    out.freeGPUs = candidate.free_gpus;
  }
  if (candidate.pool->usable_mib) out.usableMiBPerGPU = candidate.pool->usable_mib;
  if (candidate.price_per_hour) out.pricePerHour = money_number(*candidate.price_per_hour);
  if (candidate.outlook && candidate.verdict != Verdict::Refused) {
    const Outlook& outlook = *candidate.outlook;
    if (outlook.cost) out.expectedCost = money_number(*outlook.cost);
    if (outlook.hours) out.expectedHours = rounded(*outlook.hours, 100);
    if (outlook.interruptions) out.expectedInterruptions = rounded(*outlook.interruptions, 10);
  }
  return out;
}

}  // namespace

api::LayoutStatus layout_status(const estimator::Workload& workload, const estimator::Layout& layout) {
  api::LayoutStatus status;
  status.gpus = layout.gpus;
  status.nodes = layout.nodes();
  status.gpusPerNode = std::min(layout.gpus, layout.gpus_per_node);
  status.tensor = layout.tensor;
  status.pipeline = layout.pipeline;
  status.virtualStages = layout.virtual_stages;
  status.context = layout.context;
  status.expert = layout.expert;
  status.data = layout.data;
  status.replicate = layout.replicate;
  status.sharding = layout.sharding;
  status.offload = layout.offload;
  status.microBatchSize = layout.micro_batch;
  status.gradientAccumulation = estimator::accumulation_steps(workload, layout);
  status.activationCheckpointing = layout.recompute;
  status.text = estimator::layout_text(layout);
  return status;
}

api::EffectivePolicyStatus policy_status(const EffectivePolicy& policy) {
  api::EffectivePolicyStatus status;
  if (!policy.name.empty()) {
    status.name = policy.name;
    status.generation = policy.generation;
  }
  status.objective = policy.objective;
  status.rules = rules_in_words(policy);
  return status;
}

api::SizingStatus sizing_status(const Request& request, const Plan& plan) {
  api::SizingStatus status;
  status.formulaVersion = std::string(estimator::formula_version());
  const Candidate* candidate = sized_candidate(plan);
  if (candidate == nullptr) {
    status.summary = "not sized: " + outcome_message(request, plan);
    return status;
  }
  const estimator::Workload& workload = request.workload;
  const estimator::Estimate& estimate = candidate->estimate;
  status.summary = estimator::summary(workload, *candidate->layout, estimate);
  status.explanation = estimator::explain(workload, *candidate->layout, estimate);
  status.explanation.push_back(gate_line(plan, *candidate));
  const estimator::PhaseUse& use = estimate.peak_use();
  for (std::size_t i = 0; i < estimator::kTerms; ++i) {
    const std::int64_t mib = sat_from_double(std::round(use.bytes[i] / static_cast<double>(kMiB)));
    if (mib > 0) status.perGPU.push_back({std::string(estimator::term_key(static_cast<estimator::Term>(i))), mib});
  }
  status.requiredMiBPerGPU = candidate->required_mib;
  if (estimate.host_bytes_per_node > 0) status.hostMemoryMiB = mib_up(estimate.host_bytes_per_node);
  status.confidence = estimate.confidence.level;
  status.assumptions = estimator::assumptions(workload, *candidate->layout);
  for (std::string& line : outlook_assumptions(plan, *candidate)) status.assumptions.push_back(std::move(line));
  for (std::string& line : checkpoint_assumptions(request, plan)) status.assumptions.push_back(std::move(line));
  return status;
}

api::PlacementStatus placement_status(const Request& request, const Plan& plan) {
  api::PlacementStatus status;
  status.explanation = placement_explanation(request, plan);
  status.policy = policy_status(plan.stated);
  for (const Candidate& candidate : plan.ranked) {
    if (status.options.size() < kOptions) status.options.push_back(option(candidate));
  }
  const Candidate* best = plan.best();
  if (best == nullptr) return status;
  const Pool& pool = *best->pool;
  status.pool = pool.name;
  if (!best->zone.empty()) status.zone = best->zone;
  status.capacityType = pool.capacity_type;
  if (pool.interconnect != api::Interconnect::Unknown) status.interconnect = pool.interconnect;
  if (!pool.product.empty()) status.gpu = pool.product;
  status.layout = layout_status(request.workload, *best->layout);
  if (pool.price) status.currency = pool.price->currency;
  if (best->price_per_hour) status.pricePerHour = money_number(*best->price_per_hour);
  if (best->outlook) {
    if (best->outlook->cost) status.expectedCost = money_number(*best->outlook->cost);
    if (best->outlook->hours) status.expectedHours = rounded(*best->outlook->hours, 100);
    if (best->outlook->interruptions) status.expectedInterruptions = rounded(*best->outlook->interruptions, 10);
  }
  return status;
}

api::CheckpointStatus checkpoint_status(const Request& request, const Plan& plan) {
  api::CheckpointStatus status;
  const CheckpointPlan& checkpoint = plan.checkpoint;
  status.checkpointMiB = mib_up(checkpoint.size.total_bytes);
  if (checkpoint.claim.empty()) {
    status.explanation.emplace_back("no checkpoint is kept: the job has no spec.checkpoint");
    return status;
  }
  status.claim = checkpoint.claim;
  const Candidate* best = plan.best();
  if (checkpoint.existing) {
    status.explanation.push_back("claim " + checkpoint.claim + " is yours; one checkpoint is " +
                                 gib(checkpoint.size.total_bytes) + " (" + checkpoint.size.parts + "), " +
                                 std::to_string(checkpoint.keep_last) + " kept need " +
                                 gib(estimator::checkpoint_volume_bytes(checkpoint.size, checkpoint.keep_last), 0));
  } else {
    status.size = std::to_string(ceil_div(checkpoint.bytes, kGiB)) + "Gi";
    const std::int64_t needed = estimator::checkpoint_volume_bytes(checkpoint.size, checkpoint.keep_last);
    status.explanation.push_back(estimator::checkpoint_volume_text(checkpoint.size, checkpoint.keep_last));
    if (checkpoint.bytes < needed) {
      status.explanation.push_back("spec.checkpoint.volume.size asks for " + gib(checkpoint.bytes, 0) +
                                   ": less than the " + gib(needed, 0) + " that are needed");
    }
  }
  if (best != nullptr && best->interval.seconds > 0) {
    status.intervalSeconds = sat_from_double(std::round(best->interval.seconds));
    status.explanation.push_back(best->interval.why);
  }
  if (!request.pinned_zone.empty()) {
    status.zone = request.pinned_zone;
    status.explanation.push_back("the volume is in zone " + request.pinned_zone + ": only nodes there are taken");
  }
  return status;
}

}  // namespace loadline::placement
