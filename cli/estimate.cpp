#include "cli/estimate.h"

#include <algorithm>
#include <vector>

#include "base/saturating.h"
#include "base/text.h"
#include "estimator/advice.h"
#include "estimator/checkpoint_size.h"
#include "estimator/explain.h"
#include "estimator/gpu.h"
#include "estimator/workload.h"
#include "placement/policy.h"
#include "placement/sizing.h"

namespace loadline::cli {
namespace {

using estimator::Capacity;
using estimator::Gpu;
using estimator::LayoutConstraints;
using estimator::Sized;
using estimator::Workload;

constexpr std::int64_t kDefaultCheckpointsKept = 2;

/// The question, resolved.
struct Question {
  const Workload& workload;
  LayoutConstraints constraints;
  std::vector<std::int64_t> counts;  ///< of GPUs to try, in order
  std::int64_t gpus_per_node;
  std::int64_t margin_percent;
  std::vector<std::string> models;  ///< words of the cards that may be chosen; empty: any
};

struct Answer {
  const Gpu* gpu = nullptr;
  std::int64_t usable_bytes = 0;
  std::optional<Sized> sized;  ///< empty: no layout at all
  bool fits = false;
};

std::int64_t usable_bytes(const Gpu& gpu) {
  return sat_mul(std::max<std::int64_t>(gpu.memory_mib - estimator::kDriverShareMiB, 0), kMiB);
}

/// What the estimate may be so that it fits with its margin.
Capacity capacity_of(const Question& question, std::int64_t usable) {
  const double share = 100.0 / static_cast<double>(100 + question.margin_percent);
  return {.usable_bytes = sat_from_double(static_cast<double>(usable) * share),
          .gpus_per_node = question.gpus_per_node};
}

Answer answer_on(const Question& question, const Gpu& gpu) {
  Answer answer{.gpu = &gpu, .usable_bytes = usable_bytes(gpu), .sized = {}, .fits = false};
  const Capacity capacity = capacity_of(question, answer.usable_bytes);
  for (const std::int64_t count : question.counts) {
    const auto sized = estimator::best_layout(question.workload, count, question.constraints, capacity);
    if (!sized) continue;
    answer.fits = sized->estimate.peak_bytes <= capacity.usable_bytes;
    answer.sized = sized;
    if (answer.fits) break;
  }
  return answer;
}

/// By words of its name, or as a node names it.
bool wanted(const Gpu& gpu, const std::vector<std::string>& models) {
  const auto is_it = [&](const std::string& model) {
    return placement::product_is(gpu.name, model) || estimator::find_gpu(model) == &gpu;
  };
  return models.empty() || std::any_of(models.begin(), models.end(), is_it);
}

/// One card per size of memory, smallest first, of those that may be chosen.
std::vector<const Gpu*> ladder(const std::vector<std::string>& models) {
  std::vector<const Gpu*> cards;
  for (const Gpu& gpu : estimator::gpus()) {
    if (gpu.memory_mib > 0 && wanted(gpu, models)) cards.push_back(&gpu);
  }
  std::stable_sort(cards.begin(), cards.end(),
                   [](const Gpu* a, const Gpu* b) { return a->memory_mib < b->memory_mib; });
  const auto same = [](const Gpu* a, const Gpu* b) { return a->memory_mib == b->memory_mib; };
  cards.erase(std::unique(cards.begin(), cards.end(), same), cards.end());
  return cards;
}

/// The smallest card that holds it, else the largest card's answer.
Answer smallest_that_holds(const Question& question) {
  Answer last;
  for (const Gpu* card : ladder(question.models)) {
    last = answer_on(question, *card);
    if (last.fits || !last.sized) break;
  }
  return last;
}

std::string verdict_text(const Question& question, const Answer& answer, bool named) {
  const std::string card = answer.gpu->name + " (usable " + gib(answer.usable_bytes) + ")";
  const std::string margin = fixed(static_cast<double>(question.margin_percent), 0) + " % margin";
  const auto need = sat_from_double(static_cast<double>(answer.sized->estimate.peak_bytes) *
                                    static_cast<double>(100 + question.margin_percent) / 100.0);
  const std::string among = question.models.empty() ? "" : " among spec.placement.gpuModels";
  if (answer.fits) {
    return (named ? "fits on " : "the smallest card" + among + " that holds it is ") + card + ", with " + margin + " " +
           gib(answer.usable_bytes - need) + " free";
  }
  const auto advice = estimator::advice_text(question.workload, answer.sized->layout, question.constraints,
                                             capacity_of(question, answer.usable_bytes));
  return (named ? "does not fit on " : "no card known" + among + " holds it; the largest is ") + card + ": short " +
         gib(need - answer.usable_bytes) + " with " + margin + ". " + advice;
}

Report report_of(const api::TrainingJob& job, const Question& question, const Answer& answer, bool named) {
  const auto& [layout, estimate] = *answer.sized;
  const Workload& workload = question.workload;
  const std::string summary = estimator::summary(workload, layout, estimate);
  const std::string verdict = verdict_text(question, answer, named);
  const auto explanation = estimator::explain(workload, layout, estimate);
  const auto assumptions = estimator::assumptions(workload, layout);
  const std::int64_t keep =
      job.spec.checkpoint.value_or(api::CheckpointSpec{}).keepLast.value_or(kDefaultCheckpointsKept);
  const auto size = estimator::checkpoint_size(workload);
  const std::string volume = estimator::checkpoint_volume_text(size, keep);

  Report report;
  report.fits = answer.fits;
  report.text = job.metadata.name + ": " + summary + "\n" + verdict + "\n" + section("Sizing", explanation) +
                section("Checkpoint", {volume}) + section("Assumed", assumptions);
  report.data = {{"name", job.metadata.name},
                 {"fits", answer.fits},
                 {"summary", summary},
                 {"verdict", verdict},
                 {"gpu", answer.gpu->name},
                 {"gpus", layout.gpus},
                 {"layout", estimator::layout_text(layout)},
                 {"peakMiBPerGPU", ceil_div(estimate.peak_bytes, kMiB)},
                 {"usableMiBPerGPU", answer.usable_bytes / kMiB},
                 {"hostMiBPerNode", ceil_div(estimate.host_bytes_per_node, kMiB)},
                 {"checkpointMiB", ceil_div(size.total_bytes, kMiB)},
                 {"explanation", explanation},
                 {"assumptions", assumptions},
                 {"formulaVersion", estimator::formula_version()}};
  return report;
}

/// The field that was typed, where it is the number of GPUs that stands in the way.
FieldError no_layout(const Question& question, const api::TrainingJobSpec& spec, const EstimateOptions& options) {
  FieldError error =
      estimator::no_layout(question.workload, question.counts.back(), question.gpus_per_node, question.constraints);
  if (error.field != "spec.gpus") return error;
  if (options.gpus) error.field = "--gpus";
  if (!options.gpus && spec.gpus && spec.gpus->count) error.field = "spec.gpus.count";
  return error;
}

}  // namespace

Result<Report> estimate_report(const api::TrainingJob& job, const EstimateOptions& options) {
  const auto workload = estimator::workload_from(job.spec);
  if (!workload) return workload.error();
  const placement::EffectivePolicy policy = placement::effective_policy(job, {});
  const Question question{
      .workload = *workload,
      .constraints = estimator::constraints_from(job.spec),
      .counts = options.gpus ? std::vector<std::int64_t>{*options.gpus} : placement::gpu_counts(job.spec, policy),
      .gpus_per_node = options.gpus_per_node,
      .margin_percent = policy.sizing.margin_percent,
      .models = job.spec.placement.value_or(api::PlacementSpec{}).gpuModels};
  const bool named = !options.gpu.empty();
  const Gpu* card = named ? estimator::find_gpu(options.gpu) : nullptr;
  if (named && (card == nullptr || card->memory_mib == 0)) {
    return Error::invalid(
        {{FieldError::Type::NotSupported, "--gpu", options.gpu,
          card == nullptr ? "no such card in the table: name it as nvidia.com/gpu.product does"
                          : "sold with several sizes of memory: name the size too, as in V100-32GB"}});
  }
  const Answer answer = named ? answer_on(question, *card) : smallest_that_holds(question);
  if (answer.gpu == nullptr) {
    return Error::invalid({{FieldError::Type::NotSupported, "spec.placement.gpuModels", join(question.models, ", "),
                            "no card in the table has these words and a memory that is known: name one with --gpu"}});
  }
  if (!answer.sized) return Error::invalid({no_layout(question, job.spec, options)});
  return report_of(job, question, answer, named);
}

}  // namespace loadline::cli
