#include "estimator/explain.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "estimator/quantities.h"
#include "estimator/term_sum.h"

namespace loadline::estimator {
namespace {

constexpr std::size_t kNameWidth = 18;
constexpr std::size_t kSumWidth = 74;
constexpr double kGiBytes = static_cast<double>(kGiB);

/// Rounds to `scale` parts of a GiB so that the parts add up to the rounded total (largest remainder).
std::vector<std::int64_t> rounded_parts(const std::vector<double>& bytes, double scale) {
  double total = 0;
  std::vector<std::int64_t> parts;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const double units = std::min(bytes[i] / kGiBytes * scale, 1e15);
    total += units;
    parts.push_back(static_cast<std::int64_t>(units));
    sum += parts.back();
    remainders.emplace_back(units - std::floor(units), i);
  }
  std::sort(remainders.rbegin(), remainders.rend());
  const auto wanted = static_cast<std::int64_t>(std::llround(total));
  for (std::size_t i = 0; i < remainders.size() && sum < wanted; ++i, ++sum) ++parts[remainders[i].second];
  return parts;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string line(std::string_view name, const std::string& sum, std::int64_t hundredths) {
  const std::string value = fixed(static_cast<double>(hundredths) / 100, 2);
  return padded(padded(std::string(name), kNameWidth) + " " + sum, kSumWidth) + " " + right(value, 8) + " GiB";
}

std::string trained_text(const Workload& w) {
  if (has_adapters(w))
    return "frozen" + std::string(w.method == Method::QLora ? " in 4 bits" : "") + ", " + method_text(w) + " trains " +
           number(w.adapters);
  if (w.method == Method::Freeze) return number(w.trained) + " trained: " + method_text(w);
  return "all trained";
}

std::string model_line(const Sum& s) {
  return "Model " + s.w.model.name + ": " + number(s.w.parameters.total) + " parameters, " + trained_text(s.w) + "; " +
         layout_text(s.l);
}

std::string_view stage_text(const PhaseUse& use, const Layout& l) {
  if (l.pipeline <= 1) return "on every rank";
  return use.stage == Stage::First ? "on the first pipeline stage" : "on the last pipeline stage";
}

std::string rank_line(const Sum& s) {
  const Quantities& q = s.q;
  std::string text = s.l.pipeline > 1 ? "A rank " + std::string(stage_text(s.use, s.l)) : "Every rank";
  text += " holds " + number(q.local) + " parameters: " + number(q.layers) + " layers" +
          (q.has_embedding ? ", the embedding" : "") + (q.has_head ? ", the head" : "");
  if (q.tensor > 1) text += ", each matrix split in " + number(q.tensor);
  if (const std::int64_t copies = dense_copies(s.w, s.l); copies > 1) {
    text += "; the " + std::to_string(copies) + " ranks of an expert group share one batch and split only the experts";
  }
  return text;
}

std::string layer_line(const Sum& s) {
  const Quantities& q = s.q;
  const bool peak_layer = s.use[Term::RecomputedLayer] > 0;
  const double heads = peak_layer ? q.largest_head_elements : q.head_elements;
  const double mlp = peak_layer ? q.largest_mlp_elements : q.mlp_elements;
  const std::string t = over(q.tensor);
  return "One layer's tensors per token: " + number(q.hidden_elements) + over(q.hidden_split) + " hidden-size + " +
         number(heads) + t + " attention + " + number(mlp) + t + " MLP elements";
}

std::string phases_line(const Estimate& e) {
  std::vector<std::string> others;
  for (std::size_t i = 0; i < e.phase_count; ++i) {
    if (i == e.peak) continue;
    const PhaseUse& use = e.phases[i];
    std::string text(phase_text(use.phase));
    if (e.phase_count > 3) text += use.stage == Stage::First ? " (first stage)" : " (last stage)";
    others.push_back(text + " " + fixed(use.on_card() / kGiBytes, 2));
  }
  return "Less in the other phases: " + join(others, ", ") + " GiB";
}

struct Group {
  std::string name;
  double bytes = 0;
};

std::vector<Group> summary_groups(const Workload& w, const PhaseUse& u) {
  const std::string states = has_adapters(w) ? "weights+adapters" : "weights+grads+" + w.optimizer.label;
  return {
      {states, u[Term::Weights] + u[Term::Gradients] + u[Term::Master] + u[Term::OptimizerStates] +
                   u[Term::OptimizerTemporary] + u[Term::EmbeddingUpcast]},
      {"reference model", u[Term::ReferenceModel]},
      {"activations",
       u[Term::KeptActivations] + u[Term::StackActivations] + u[Term::RecomputedLayer] + u[Term::ExpertDispatch]},
      {"attention scores", u[Term::AttentionScores]},
      {"logits", u[Term::Logits]},
      {"buffers", u[Term::GatherBuffers] + u[Term::ReduceBuffers] + u[Term::HeldGradients] + u[Term::Dequantisation]},
      {"context and reserve", u[Term::Context] + u[Term::Communicators] + u[Term::Fragmentation]}};
}

}  // namespace

std::vector<std::string> explain(const Workload& workload, const Layout& layout, const Estimate& estimate) {
  const PhaseUse& peak = estimate.peak_use();
  const Sum s{workload, layout, peak, quantities(workload, layout, peak.stage)};
  std::vector<double> bytes(peak.bytes.begin(), peak.bytes.end());
  const std::vector<std::int64_t> parts = rounded_parts(bytes, 100);

  std::vector<std::string> lines{model_line(s)};
  if (layout.tensor > 1 || layout.pipeline > 1 || layout.expert > 1) lines.push_back(rank_line(s));
  const bool layer_tensors =
      peak[Term::RecomputedLayer] > 0 || (peak[Term::KeptActivations] > 0 && layout.recompute != Recompute::Full);
  if (layer_tensors) lines.push_back(layer_line(s));
  std::int64_t total = 0;
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (parts[i] == 0) continue;
    const auto term = static_cast<Term>(i);
    lines.push_back(line(term_name(term), term_sum(s, term), parts[i]));
    total += parts[i];
  }
  const std::string where = std::string(phase_text(peak.phase)) + ", " + std::string(stage_text(peak, layout));
  lines.push_back(line("Peak", where, total));
  lines.push_back(phases_line(estimate));
  if (estimate.host_bytes_per_node > 0) {
    const bool paged = layout.offload == Offload::None;
    const std::string sum =
        paged ? "the optimizer states of its GPUs" : number(workload.recipe.host_slack) + " x what is offloaded";
    lines.push_back("Host memory per node for " + std::string(paged ? "paged" : "offloaded") +
                    " states: " + gib(estimate.host_bytes_per_node, 2) + " (" + sum + ")");
  }
  return lines;
}

std::string parts_text(const Workload& workload, const Estimate& estimate) {
  const std::vector<Group> groups = summary_groups(workload, estimate.peak_use());
  std::vector<double> bytes;
  bytes.reserve(groups.size());
  for (const Group& g : groups) bytes.push_back(g.bytes);
  const std::vector<std::int64_t> parts = rounded_parts(bytes, 10);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (parts[i] > 0) texts.push_back(groups[i].name + " " + fixed(static_cast<double>(parts[i]) / 10, 1));
  }
  return join(texts, ", ");
}

std::string summary(const Workload& workload, const Layout& layout, const Estimate& estimate) {
  std::string text = "needs " + std::string(estimate.lower_bound_only ? "at least " : "") + gib(estimate.peak_bytes) +
                     " per GPU on " + std::to_string(layout.gpus) + (layout.gpus == 1 ? " GPU (" : " GPUs (");
  text += layout_text(layout) + "): " + parts_text(workload, estimate);
  if (estimate.lower_bound_only) return text + "; a lower bound: only the number of parameters is known";
  text += "; " + std::string(api::name_of(estimate.confidence.level)) + " confidence";
  return text + " (+-" + fixed(estimate.confidence.band_percent, 0) + " %)";
}

std::string_view formula_version() { return "1"; }

}  // namespace loadline::estimator
