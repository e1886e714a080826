#include "cli/plan.h"

#include <algorithm>
#include <iterator>

#include "api/codec.h"
#include "estimator/workload.h"
#include "placement/explain.h"
#include "placement/inventory.h"
#include "placement/job_check.h"
#include "placement/ledger.h"
#include "placement/plan.h"

namespace loadline::cli {
namespace {

/// What a pool without a limit of its own may grow to when no nodes are given.
constexpr std::int64_t kUnlimitedNodes = 1000;

std::vector<api::GPUPool> pools_to_plan_on(const Inputs& inputs) {
  std::vector<api::GPUPool> pools = inputs.pools;
  if (!inputs.nodes.empty()) return pools;
  for (api::GPUPool& pool : pools) {
    api::ScalingSpec scaling = pool.spec.scaling.value_or(api::ScalingSpec{});
    if (!scaling.maxNodes) scaling.maxNodes = kUnlimitedNodes;
    pool.spec.scaling = scaling;
  }
  return pools;
}

std::vector<std::string> in_words(const std::vector<FieldError>& errors) {
  std::vector<std::string> lines;
  lines.reserve(errors.size());
  std::transform(errors.begin(), errors.end(), std::back_inserter(lines),
                 [](const FieldError& error) { return to_string(error); });
  return lines;
}

/// As admission words them.
std::vector<std::string> warnings_of(const placement::Request& request, const placement::Plan& plan) {
  std::vector<std::string> warnings = placement::apply_warnings(request, plan);
  std::vector<std::string> notes = placement::template_notes(request.job.spec.podTemplate);
  std::move(notes.begin(), notes.end(), std::back_inserter(warnings));
  return warnings;
}

api::TrainingJobStatus status_of(const placement::Request& request, const placement::Plan& plan) {
  api::TrainingJobStatus status;
  if (plan.best() != nullptr) {
    status.sizing = placement::sizing_status(request, plan);
    status.checkpoint = placement::checkpoint_status(request, plan);
  }
  status.placement = placement::placement_status(request, plan);
  return status;
}

std::string text_of(const api::TrainingJob& job, const std::string& outcome, const api::TrainingJobStatus& status,
                    const std::vector<std::string>& remarks, bool fits) {
  std::string text = job.metadata.name + ": " + outcome + "\n";
  text += section(fits ? "At apply" : "Refused", remarks);
  if (status.sizing) text += section("Sizing", status.sizing->explanation);
  text += section("Placement", status.placement->explanation);
  if (status.placement->policy) text += section("Policy", status.placement->policy->rules);
  if (status.checkpoint) text += section("Checkpoint", status.checkpoint->explanation);
  if (status.sizing) text += section("Assumed", status.sizing->assumptions);
  return text;
}

}  // namespace

Result<Report> plan_report(const api::TrainingJob& job, const Inputs& inputs, TimePoint now) {
  const auto workload = estimator::workload_from(job.spec);
  if (!workload) return workload.error();
  const placement::Inventory inventory =
      placement::inventory_of(pools_to_plan_on(inputs), inputs.nodes, inputs.pods, now);
  const placement::Request request{job, *workload, {}, {}, {}, {}, {}, 0};
  const placement::Plan plan = placement::plan(request, inventory, inputs.policies, placement::Ledger{}, now);

  const auto refusals = placement::refusals(request, plan);
  const bool fits = refusals.empty() && plan.outcome != placement::Outcome::Unplaceable;
  const std::vector<std::string> remarks = refusals.empty() ? warnings_of(request, plan) : in_words(refusals);
  const std::string outcome = placement::outcome_message(request, plan);
  const api::TrainingJobStatus status = status_of(request, plan);

  Report report;
  report.fits = fits;
  report.text = text_of(job, outcome, status, remarks, fits);
  report.data = {{"name", job.metadata.name},
                 {"fits", fits},
                 {"reason", placement::outcome_reason(plan)},
                 {"message", outcome},
                 {fits ? "warnings" : "refusals", remarks},
                 {"status", api::to_json(status)}};
  return report;
}

}  // namespace loadline::cli
