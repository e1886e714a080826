#include "estimator/advice.h"

#include <algorithm>
#include <functional>

#include "base/saturating.h"
#include "base/text.h"

namespace loadline::estimator {
namespace {

constexpr std::size_t kMaxChanges = 3;
constexpr std::int64_t kGpuGrowth = 16;  ///< most times as many GPUs as asked for
constexpr std::int64_t kAdviceRank = 16;

std::string figure(const Sized& sized) { return gib_number(sized.estimate.peak_bytes); }
std::string on(std::int64_t gpus) { return " on " + std::to_string(gpus); }

/// What the advice starts from and where it may go.
struct Search {
  const Workload& w;
  const Layout& asked;
  const LayoutConstraints& c;
  const Capacity& capacity;
  std::vector<Change> found;

  [[nodiscard]] bool full() const { return found.size() >= kMaxChanges; }

  [[nodiscard]] bool fits(const Sized& s) const { return s.estimate.peak_bytes <= capacity.usable_bytes; }

  std::optional<Sized> best(const Workload& workload, std::int64_t gpus, const LayoutConstraints& constraints) const {
    return best_layout(workload, gpus, constraints, capacity);
  }
  /// Notes the change when it fits.
  bool note(const std::optional<Sized>& sized, const std::function<std::string(const Sized&)>& text) {
    if (full() || !sized || !fits(*sized)) return false;
    found.push_back({text(*sized), sized->estimate.peak_bytes, sized->layout});
    return true;
  }
};

double sharded_part(const PhaseUse& u) {
  return u[Term::Weights] + u[Term::Gradients] + u[Term::Master] + u[Term::OptimizerStates] +
         u[Term::OptimizerTemporary] + u[Term::EmbeddingUpcast] + u[Term::ReferenceModel];
}

double sequence_part(const PhaseUse& u) {
  return u[Term::KeptActivations] + u[Term::RecomputedLayer] + u[Term::AttentionScores] + u[Term::Logits] +
         u[Term::ExpertDispatch];
}

/// What the user fixed and could let go: recompute and micro-batch cost time, not money.
void try_cheaper_settings(Search& s) {
  Workload recompute = s.w;
  recompute.recompute = Recompute::Full;
  const bool may_recompute = s.w.recompute && *s.w.recompute != Recompute::Full;
  if (may_recompute) {
    s.note(s.best(recompute, s.asked.gpus, s.c), [](const Sized& x) { return "full recompute (" + figure(x) + ")"; });
  }
  if (s.w.micro_batch && *s.w.micro_batch > 1) {
    Workload small = s.w;
    small.micro_batch = 1;
    const bool alone =
        s.note(s.best(small, s.asked.gpus, s.c), [](const Sized& x) { return "micro-batch 1 (" + figure(x) + ")"; });
    if (!alone && may_recompute && s.found.empty()) {
      recompute.micro_batch = 1;
      s.note(s.best(recompute, s.asked.gpus, s.c),
             [](const Sized& x) { return "micro-batch 1 with full recompute (" + figure(x) + ")"; });
    }
  }
  if (s.w.loss != api::Loss::Fused) {
    Workload fused = s.w;
    fused.loss = api::Loss::Fused;
    s.note(s.best(fused, s.asked.gpus, s.c), [](const Sized& x) { return "fused loss (" + figure(x) + ")"; });
  }
}

/// Sharding that the user ruled out.
void try_sharding(Search& s) {
  if (s.asked.gpus < 2 || !s.c.sharding || *s.c.sharding == Sharding::Zero3) return;
  LayoutConstraints c = s.c;
  c.sharding = Sharding::Zero3;
  s.note(s.best(s.w, s.asked.gpus, c),
         [](const Sized& x) { return "ZeRO-3 on " + std::to_string(x.layout.gpus) + " (" + figure(x) + ")"; });
}

/// For long sequences: only splitting the sequence or the matrices makes activations
/// smaller, since each data-parallel rank still holds whole sequences.
void try_splitting_the_sequence(Search& s) {
  if (s.full()) return;
  Workload w = s.w;
  w.recipe.model_parallel = true;
  LayoutConstraints c = s.c;
  c.tensor.reset();
  c.context.reset();
  const std::int64_t most = std::max(s.asked.gpus, s.capacity.gpus_per_node);
  for (std::int64_t gpus = std::max<std::int64_t>(2, s.asked.gpus); gpus <= most; gpus *= 2) {
    const std::optional<Sized> sized = s.best(w, gpus, c);
    if (!sized || (sized->layout.tensor == s.asked.tensor && sized->layout.context == s.asked.context)) continue;
    const bool other_framework = !s.w.recipe.model_parallel;
    if (s.note(sized, [&](const Sized& x) {
          return layout_short(x.layout) + on(x.layout.gpus) + " (" + figure(x) +
                 (other_framework ? ", with a framework that splits models)" : ")");
        })) {
      return;
    }
  }
}

/// More GPUs, when it is the states that do not fit. "not 16 GPUs (86.9) but 32 (54.0)".
void try_more_gpus(Search& s, const PhaseUse& peak) {
  if (s.full() || sharded_part(peak) < sequence_part(peak)) return;
  const std::int64_t most = s.capacity.max_gpus > 0 ? s.capacity.max_gpus : sat_mul(s.asked.gpus, kGpuGrowth);
  LayoutConstraints c = s.c;
  std::optional<Sized> before;
  for (std::int64_t gpus = sat_mul(s.asked.gpus, 2); gpus <= most; gpus = sat_mul(gpus, 2)) {
    const std::optional<Sized> sized = s.best(s.w, gpus, c);
    if (!sized) continue;
    if (s.note(sized, [&](const Sized& x) {
          const std::string now = std::to_string(x.layout.gpus);
          if (!before) return now + " GPUs (" + figure(x) + ")";
          return "not " + std::to_string(before->layout.gpus) + " GPUs (" + figure(*before) + ") but " + now + " (" +
                 figure(x) + ")";
        })) {
      return;
    }
    before = sized;
  }
}

void try_adapters(Search& s) {
  const bool qlora = s.w.method == Method::QLora;
  if (qlora || s.w.model.fidelity == Fidelity::LowerBound) return;
  if (s.w.method != Method::Lora) {
    if (s.note(s.best(with_lora(s.w, kAdviceRank), s.asked.gpus, s.c), [](const Sized& x) {
          return "LoRA rank " + std::to_string(kAdviceRank) + on(x.layout.gpus) + " (" + figure(x) + ")";
        })) {
      return;
    }
  }
  if (s.w.precision == Precision::Fp32 || s.w.precision == Precision::Fp8) return;
  const std::int64_t rank = s.w.method == Method::Lora ? s.w.lora.rank : kAdviceRank;
  s.note(s.best(with_lora(s.w, rank, true), s.asked.gpus, s.c), [&](const Sized& x) {
    return "QLoRA rank " + std::to_string(rank) + on(x.layout.gpus) + " (" + figure(x) + ")";
  });
}

void try_offload(Search& s) {
  if (s.c.offload && *s.c.offload != Offload::None) return;
  for (const Offload offload : {Offload::Optimizer, Offload::Full}) {
    LayoutConstraints c = s.c;
    c.offload = offload;
    const std::optional<Sized> sized = s.best(s.w, s.asked.gpus, c);
    if (sized && s.capacity.host_bytes_per_node > 0 &&
        sized->estimate.host_bytes_per_node > s.capacity.host_bytes_per_node) {
      continue;
    }
    if (s.note(sized, [&](const Sized& x) {
          return std::string(offload == Offload::Full ? "full" : "optimizer") + " offload" + on(x.layout.gpus) + " (" +
                 figure(x) + ", host " + gib(x.estimate.host_bytes_per_node, 0) + " per node)";
        })) {
      return;
    }
  }
}

Sized smallest(const Search& s) {
  const std::optional<Sized> best = s.best(s.w, s.asked.gpus, s.c);
  return best ? *best : Sized{s.asked, estimate(s.w, s.asked)};
}

}  // namespace

std::optional<Sized> best_layout(const Workload& workload, std::int64_t gpus, const LayoutConstraints& constraints,
                                 const Capacity& capacity) {
  std::optional<Sized> least;
  for (const Layout& layout : sensible_layouts(workload, gpus, capacity.gpus_per_node, constraints)) {
    const Estimate e = estimate(workload, layout);
    if (e.peak_bytes <= capacity.usable_bytes) return Sized{layout, e};
    if (!least || e.peak_bytes < least->estimate.peak_bytes) least = Sized{layout, e};
  }
  return least;
}

std::vector<Change> advise(const Workload& workload, const Layout& asked, const LayoutConstraints& constraints,
                           const Capacity& capacity) {
  Search search{workload, asked, constraints, capacity, {}};
  const PhaseUse peak = smallest(search).estimate.peak_use();
  try_cheaper_settings(search);
  try_sharding(search);
  if (sequence_part(peak) > sharded_part(peak)) try_splitting_the_sequence(search);
  try_more_gpus(search, peak);
  try_adapters(search);
  try_offload(search);
  return std::move(search.found);
}

std::string advice_text(const Workload& workload, const Layout& asked, const LayoutConstraints& constraints,
                        const Capacity& capacity) {
  const std::vector<Change> changes = advise(workload, asked, constraints, capacity);
  if (!changes.empty()) {
    std::vector<std::string> texts;
    texts.reserve(changes.size());
    for (const Change& change : changes) texts.push_back(change.text);
    return "Would fit: " + join(texts, "; ");
  }
  const Search search{workload, asked, constraints, capacity, {}};
  const Sized least = smallest(search);
  const PhaseUse& peak = least.estimate.peak_use();
  const auto largest = std::max_element(peak.bytes.begin(), peak.bytes.end());
  const auto term = static_cast<Term>(std::distance(peak.bytes.begin(), largest));
  std::string name(term_name(term));
  return "Nothing tried makes it fit on these cards; the largest term is " + name + " (" +
         gib_number(sat_from_double(*largest)) + " of " + gib(least.estimate.peak_bytes) +
         "); it needs cards with more than " + gib(least.estimate.peak_bytes) + " usable";
}

}  // namespace loadline::estimator
