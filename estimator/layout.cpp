#include "estimator/layout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/saturating.h"
#include "estimator/workload.h"

namespace loadline::estimator {
namespace {

using Degrees = std::vector<std::int64_t>;

constexpr std::int64_t kMaxChosenPipeline = 16;
constexpr std::int64_t kMaxChosenMicroBatch = 16;
/// Ring attention pays only when one sequence is long.
constexpr std::int64_t kContextParallelFrom = 16'384;

bool divides(std::int64_t d, std::int64_t n) { return d > 0 && n % d == 0; }

/// GPUs of each node when they are spread evenly over as few as can be: 12 on nodes of 8 are 2 x 6.
std::int64_t evenly(std::int64_t gpus, std::int64_t gpus_per_node) {
  if (gpus <= gpus_per_node) return gpus_per_node;
  while (gpus % gpus_per_node != 0) --gpus_per_node;
  return gpus_per_node;
}

/// Tensor parallelism splits heads and the MLP; an unknown architecture is not checked.
bool tensor_fits(const Model& m, std::int64_t t) {
  if (m.fidelity == Fidelity::LowerBound) return true;
  const auto splits = [t](const Block& b) {
    return divides(t, b.heads) && divides(t, b.kv_heads) && divides(t, b.ffn);
  };
  if (m.recurrence.layers > 0) {
    // Hybrids split their recurrence too; what a model does not have sets no limit.
    const bool attention = m.attention_layers() <= 0 || (divides(t, m.heads) && divides(t, m.kv_heads));
    const bool mlp = m.mlp_free_layers >= m.layers || divides(t, m.ffn);
    return attention && mlp && divides(t, m.recurrence.kind == Mixing::ShortConv ? m.hidden : m.recurrence.inner);
  }
  return splits(m) && std::all_of(m.stacks.begin(), m.stacks.end(), splits);
}

/// Pipelines of several stacks, and sequences that a recurrence carries over, are not modelled.
bool is_composite(const Model& m) { return !m.stacks.empty() || m.recurrence.layers > 0; }

/// What may be tried for one degree: the user's value, or the powers of two up to `most`.
Degrees degrees(const std::optional<std::int64_t>& fixed, std::int64_t most) {
  if (fixed) return {*fixed};
  Degrees out;
  for (std::int64_t d = 1; d <= most; d *= 2) out.push_back(d);
  return out;
}

/// The sequences per optimizer step come out whole.
bool batch_fits(const Workload& w, std::int64_t micro_batch, std::int64_t data) {
  if (!w.global_batch) return true;
  return divides(data, *w.global_batch) && divides(micro_batch, *w.global_batch / data);
}

/// A guess at the cost of a layout's communication and recompute, as a share of the step.
/// It only orders the list; placement measures with step_time().
double overhead(const Workload& w, const Layout& l) {
  const auto log2 = [](std::int64_t n) { return std::log2(static_cast<double>(n)); };
  double cost = 0.04 * log2(l.tensor) + 0.06 * log2(l.context) + 0.05 * log2(l.expert);
  // The share of time a pipeline idles: (p - 1) / (chunks x micro-batches + p - 1).
  const double stages = static_cast<double>(l.pipeline);
  const double chunks = static_cast<double>(l.virtual_stages) * static_cast<double>(accumulation_steps(w, l));
  cost += 0.03 * log2(l.pipeline) + (stages - 1) / (chunks + stages - 1);
  // Full recompute repeats the forward pass: a third more work.
  static constexpr std::array<double, 4> kRecompute{0, 0.08, 0.33, 0.36};
  static constexpr std::array<double, 4> kSharding{0, 0.01, 0.02, 0.05};
  static constexpr std::array<double, 3> kOffload{0, 0.6, 1.5};
  cost += kRecompute[static_cast<std::size_t>(l.recompute)] + kSharding[static_cast<std::size_t>(l.sharding)] +
          kOffload[static_cast<std::size_t>(l.offload)];
  return cost + 0.1 / static_cast<double>(l.micro_batch);
}

std::vector<Sharding> shardings(const Workload& w, const Layout& l, const LayoutConstraints& c) {
  if (c.sharding) return {*c.sharding};
  if (l.shards() <= 1) return {Sharding::None};
  std::vector<Sharding> out;
  for (const Sharding s : w.recipe.shardings) {
    // Pipeline stages pass several micro-batches per step: sharding gradients or weights
    // would gather them for each one.
    if (l.pipeline > 1 && s > Sharding::Zero1 && w.recipe.shardings.size() > 1) continue;
    out.push_back(s);
  }
  return out;
}

Degrees micro_batches(const Workload& w, std::int64_t data) {
  if (w.micro_batch) return batch_fits(w, *w.micro_batch, data) ? Degrees{*w.micro_batch} : Degrees{};
  Degrees out;
  // Without an architecture no activation grows with it: the smallest is as good as any.
  const std::int64_t most = w.model.fidelity == Fidelity::LowerBound ? 1 : kMaxChosenMicroBatch;
  for (std::int64_t m = 1; m <= most; m *= 2) {
    if (batch_fits(w, m, data)) out.push_back(m);
  }
  return out;
}

/// Adds every sharding, micro-batch and recompute mode for one grid of degrees.
void add_variants(const Workload& w, const Layout& grid, const LayoutConstraints& c, std::vector<Layout>& out) {
  const bool known = w.model.fidelity != Fidelity::LowerBound;
  for (const Sharding sharding : shardings(w, grid, c)) {
    for (const std::int64_t micro : micro_batches(w, grid.data)) {
      for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
        if (w.recompute ? recompute != *w.recompute : !known && recompute != Recompute::None) continue;
        Layout l = grid;
        l.sharding = sharding;
        l.micro_batch = micro;
        l.recompute = recompute;
        l.offload = c.offload.value_or(Offload::None);
        // Gradients that are used up as they come cannot be added up over micro-batches.
        if (w.optimizer_in_backward && accumulation_steps(w, l) > 1) continue;
        out.push_back(l);
      }
    }
  }
}

struct Grid {
  Degrees tensor, pipeline, context, expert;
};

Grid grid_of(const Workload& w, std::int64_t gpus, std::int64_t gpus_per_node, const LayoutConstraints& c) {
  // 4-bit base weights are not split inside a matrix by any of the frameworks.
  const bool may = w.recipe.model_parallel && w.method != Method::QLora;
  const std::int64_t node = std::min(gpus, gpus_per_node);
  Grid grid;
  grid.tensor = degrees(c.tensor, may ? node : 1);
  grid.pipeline = degrees(c.pipeline, may ? std::min(gpus, kMaxChosenPipeline) : 1);
  grid.context = degrees(c.context, may && w.sequence >= kContextParallelFrom ? node : 1);
  grid.expert = degrees(c.expert, may && w.model.moe.experts > 0 ? node : 1);
  return grid;
}

/// Nothing when the degrees do not make a layout of these GPUs.
std::optional<Layout> layout_of(const Workload& w, std::int64_t gpus, std::int64_t gpus_per_node, std::int64_t t,
                                std::int64_t p, std::int64_t cp, std::int64_t e, const LayoutConstraints& c) {
  if (t < 1 || p < 1 || cp < 1 || e < 1 || t > gpus_per_node || !tensor_fits(w.model, t)) return std::nullopt;
  const bool known = w.model.fidelity != Fidelity::LowerBound;
  if (known && (!divides(p, w.model.layers) || !divides(cp, w.sequence))) return std::nullopt;
  if (is_composite(w.model) && (p > 1 || cp > 1)) return std::nullopt;
  if (t > gpus || p > gpus / t || cp > gpus / t / p) return std::nullopt;
  const bool shares_batch = w.recipe.expert_group_shares_batch && e > 1;
  if (shares_batch && (t > 1 || e > gpus / t / p / cp)) return std::nullopt;
  const std::int64_t model_ranks = t * p * cp * (shares_batch ? e : 1);
  if (!divides(model_ranks, gpus)) return std::nullopt;
  Layout l;
  l.gpus = gpus;
  l.gpus_per_node = gpus_per_node;
  l.tensor = t;
  l.pipeline = p;
  l.context = cp;
  l.expert = e;
  l.data = gpus / model_ranks;
  l.replicate = c.replicate.value_or(1);
  l.virtual_stages = p > 1 ? c.virtual_stages.value_or(1) : 1;
  if (!divides(l.replicate, l.data) || l.virtual_stages < 1) return std::nullopt;
  if (known && (p > w.model.layers || !divides(l.virtual_stages, w.model.layers / p))) return std::nullopt;
  if (e > 1 && (w.model.moe.experts == 0 || !divides(e, w.model.moe.experts))) return std::nullopt;
  if (!shares_batch && !divides(e, l.shards())) return std::nullopt;
  return l;
}

/// Sorted by overhead(), computed once per layout; equal ones keep their order.
std::vector<Layout> cheapest_first(const Workload& w, const std::vector<Layout>& layouts) {
  std::vector<std::pair<double, std::size_t>> order;
  order.reserve(layouts.size());
  for (std::size_t i = 0; i < layouts.size(); ++i) order.emplace_back(overhead(w, layouts[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<Layout> out;
  out.reserve(layouts.size());
  for (const auto& [cost, index] : order) out.push_back(layouts[index]);
  return out;
}

}  // namespace

std::int64_t dense_copies(const Workload& w, const Layout& l) {
  return w.recipe.expert_group_shares_batch ? std::max<std::int64_t>(1, l.expert) : 1;
}

std::int64_t accumulation_steps(const Workload& w, const Layout& l) {
  if (!w.global_batch) return 1;
  return std::max<std::int64_t>(
      1, *w.global_batch / std::max<std::int64_t>(1, l.data) / std::max<std::int64_t>(1, l.micro_batch));
}

std::vector<Layout> sensible_layouts(const Workload& w, std::int64_t gpus, std::int64_t gpus_per_node,
                                     const LayoutConstraints& c) {
  std::vector<Layout> out;
  if (gpus < 1 || gpus_per_node < 1) return out;
  gpus_per_node = evenly(gpus, gpus_per_node);
  const Grid grid = grid_of(w, gpus, gpus_per_node, c);
  out.reserve(256);
  for (const std::int64_t t : grid.tensor) {
    for (const std::int64_t p : grid.pipeline) {
      for (const std::int64_t cp : grid.context) {
        for (const std::int64_t e : grid.expert) {
          const std::optional<Layout> l = layout_of(w, gpus, gpus_per_node, t, p, cp, e, c);
          // A pipeline with fewer micro-batches than stages mostly waits.
          if (!l || (p > 1 && !c.pipeline && w.global_batch && *w.global_batch / l->data < p)) continue;
          add_variants(w, *l, c, out);
        }
      }
    }
  }
  return cheapest_first(w, out);
}

FieldError no_layout(const Workload& w, std::int64_t gpus, std::int64_t gpus_per_node, const LayoutConstraints& c) {
  const auto n = [](std::int64_t v) { return std::to_string(v); };
  const auto wrong = [](std::string field, std::string value, std::string rule) {
    return FieldError{FieldError::Type::Invalid, std::move(field), std::move(value), std::move(rule)};
  };
  const auto degree = [&](const std::string& name, std::int64_t value, const std::string& rule) {
    return wrong("spec.parallelism." + name, n(value), name + " " + n(value) + " " + rule);
  };
  if (gpus < 1 || gpus_per_node < 1) return wrong("spec.gpus", n(gpus), "at least one GPU is needed");
  gpus_per_node = evenly(gpus, gpus_per_node);
  const std::int64_t t = c.tensor.value_or(1);
  const std::int64_t p = c.pipeline.value_or(1);
  const std::int64_t cp = c.context.value_or(1);
  if (t > gpus_per_node) return degree("tensor", t, "does not stay within a node of " + n(gpus_per_node) + " GPUs");
  if (!tensor_fits(w.model, t)) {
    return degree("tensor", t,
                  "must divide heads (" + n(w.model.heads) + "), KV heads (" + n(w.model.kv_heads) +
                      ") and MLP width (" + n(w.model.ffn) + ")");
  }
  if (is_composite(w.model) && (p > 1 || cp > 1)) {
    return wrong(p > 1 ? "spec.parallelism.pipeline" : "spec.parallelism.context", n(p > 1 ? p : cp),
                 "pipeline and context parallelism are not supported yet for a model with further stacks or recurrent "
                 "layers");
  }
  if (w.model.layers > 0 && !divides(p, w.model.layers)) {
    return degree("pipeline", p, "must divide the " + n(w.model.layers) + " layers");
  }
  if (!divides(cp, w.sequence)) {
    return degree("context", cp, "must divide the sequence of " + n(w.sequence) + " tokens");
  }
  if (t > gpus || p > gpus / t || cp > gpus / t / p || !divides(t * p * cp, gpus)) {
    return wrong(
        "spec.parallelism", "",
        "tensor x pipeline x context (" + n(t) + " x " + n(p) + " x " + n(cp) + ") must divide " + n(gpus) + " GPUs");
  }
  if (c.expert && *c.expert > 1 && (w.model.moe.experts == 0 || !divides(*c.expert, w.model.moe.experts))) {
    return degree("expert", *c.expert, "must divide the model's experts (" + n(w.model.moe.experts) + ")");
  }
  std::int64_t data = gpus / (t * p * cp);
  if (const std::int64_t e = c.expert.value_or(1); e > 1 && w.recipe.expert_group_shares_batch) {
    if (t > 1) {
      return degree("expert", e, "and tensor " + n(t) + " are the same ranks in this framework: leave one out");
    }
    if (!divides(e, data)) return degree("expert", e, "must divide the " + n(data) + " GPUs of one pipeline stage");
    data /= e;
  } else if (!divides(e, data * cp)) {
    return degree("expert", e, "must divide data x context (" + n(data * cp) + ")");
  }
  if (c.replicate && !divides(*c.replicate, data)) {
    return degree("replicate", *c.replicate, "must divide the " + n(data) + " data-parallel ranks");
  }
  if (c.virtual_stages && p > 1 && w.model.layers > 0 && !divides(*c.virtual_stages, w.model.layers / p)) {
    return degree("virtualStages", *c.virtual_stages,
                  "must divide the " + n(w.model.layers / p) + " layers of a stage");
  }
  if (w.optimizer_in_backward && w.global_batch) {
    return wrong("spec.training.optimizerInBackward", "true",
                 "optimizerInBackward allows one micro-batch per step, and the global batch of " + n(*w.global_batch) +
                     " sequences takes more on " + n(data) + " data-parallel ranks");
  }
  if (w.global_batch && *w.global_batch < data && divides(*w.global_batch, data)) {
    return wrong("spec.gpus", n(gpus),
                 "the global batch of " + n(*w.global_batch) + " sequences is enough for " + n(*w.global_batch) +
                     " data-parallel ranks, and " + n(gpus) + " GPUs make " + n(data));
  }
  if (w.global_batch) {
    return wrong("spec.training.globalBatchSize", n(*w.global_batch),
                 "the global batch of " + n(*w.global_batch) + " sequences is not a whole number of micro-batches on " +
                     n(data) + " data-parallel ranks; multiples of " + n(sat_mul(data, w.micro_batch.value_or(1))) +
                     " are");
  }
  return wrong("spec.parallelism", "", "no layout of " + n(gpus) + " GPUs satisfies spec.parallelism");
}

std::string why_no_layout(const Workload& w, std::int64_t gpus, std::int64_t gpus_per_node,
                          const LayoutConstraints& c) {
  return no_layout(w, gpus, gpus_per_node, c).detail;
}

namespace {

std::string_view sharding_name(Sharding s) {
  static constexpr std::array<std::string_view, 4> kNames{"DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3"};
  return kNames[static_cast<std::size_t>(s)];
}

void append(std::string& text, std::string_view separator, std::string_view part) {
  if (!text.empty()) text += separator;
  text += part;
}

std::string degrees_text(const Layout& l) {
  std::string text;
  const auto add = [&](const char* name, std::int64_t degree) {
    if (degree > 1) append(text, " x ", std::string(name) + " " + std::to_string(degree));
  };
  add("TP", l.tensor);
  add("PP", l.pipeline);
  if (l.virtual_stages > 1) text += " (" + std::to_string(l.virtual_stages) + " chunks)";
  add("CP", l.context);
  if (!text.empty()) add("DP", l.data);
  add("EP", l.expert);
  return text;
}

std::string tail_text(const Layout& l) {
  std::string text = ", micro-batch " + std::to_string(l.micro_batch);
  if (l.recompute != Recompute::None) text += ", " + std::string(api::name_of(l.recompute)) + " recompute";
  if (l.offload == Offload::Optimizer) text += ", optimizer offload";
  if (l.offload == Offload::Full) text += ", full offload";
  return text;
}

}  // namespace

std::string layout_text(const Layout& l) {
  std::string text = degrees_text(l);
  if (text.empty() || l.expert > 1) {
    if (l.data > 1 || l.sharding != Sharding::None) {
      append(text, ", ", std::string(sharding_name(l.sharding)) + " over " + std::to_string(l.shards()));
      if (l.replicate > 1) text += " in " + std::to_string(l.replicate) + " groups";
    }
  } else if (l.sharding != Sharding::None) {
    append(text, ", ", sharding_name(l.sharding));
  }
  if (text.empty()) text = "one GPU";
  return text + tail_text(l);
}

std::string layout_short(const Layout& l) {
  std::string text = degrees_text(l);
  if (l.sharding != Sharding::None || (text.empty() && l.data > 1)) append(text, ", ", sharding_name(l.sharding));
  return text.empty() ? "one GPU" : text;
}

}  // namespace loadline::estimator
