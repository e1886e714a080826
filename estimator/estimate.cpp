#include "estimator/estimate.h"

#include <algorithm>
#include <utility>

#include "base/saturating.h"
#include "base/text.h"
#include "estimator/quantities.h"

namespace loadline::estimator {
namespace {

constexpr double kGiBytes = static_cast<double>(kGiB);

double d(std::int64_t value) { return static_cast<double>(value); }

/// Bytes that `shards` ranks share, or that each holds when there is nothing to share.
double shared(double bytes_each, double whole, double local, double shards) {
  return bytes_each * (shards > 1 ? whole / shards : local);
}

/// What lies on the card from the first step to the last.
struct Resident {
  double weights = 0, upcast = 0, gradients = 0, master = 0, states = 0, step = 0, reference = 0;
};

Resident resident(const Workload& w, const Quantities& q) {
  Resident r;
  const StateBytes& b = q.bytes;
  const OptimizerRow& o = w.optimizer;
  if (has_adapters(w)) {
    const double adapter = w.recipe.adapter_bytes;
    const double rest_whole = q.whole - q.quantised_whole;
    const double rest_local = q.local - q.quantised_local;
    r.weights = shared(q.bytes.compute, rest_whole, rest_local, q.weight_shards) +
                shared(w.quantised_bytes, q.quantised_whole, q.quantised_local, q.weight_shards) +
                shared(adapter, q.adapters, q.adapters, q.weight_shards);
    if (w.kbit_upcast && !(q.weight_shards > 1 && w.recipe.sharded_low_precision)) {
      r.upcast = shared(std::max(0.0, 4 - q.bytes.compute), rest_whole, rest_local, q.weight_shards);
    }
    r.gradients = shared(adapter, q.adapters, q.adapters, q.gradient_shards);
    r.states = shared(o.moments * adapter + o.fixed_bytes, q.adapters, q.adapters, q.state_shards);
    if (o.step_temporary) r.step = shared(adapter, q.adapters, q.adapters, q.state_shards);
    // Embedding and head trained whole: a copy beside the frozen one, with all its states in compute precision.
    const double whole = q.trained_whole;
    r.weights += shared(b.compute, whole, whole, q.weight_shards);
    r.gradients += shared(b.compute, whole, whole, q.gradient_shards);
    r.states += shared(o.vector_moments * b.compute + o.vector_fixed, whole, whole, q.state_shards);
    if (o.step_temporary) r.step += shared(b.compute, whole, whole, q.state_shards);
  } else {
    r.weights = shared(b.weights, q.whole, q.local, q.weight_shards);
    // Autocast caches and fp8 copies; under ZeRO-3 the gathered unit is that copy.
    if (q.weight_shards <= 1) r.weights += b.compute_copy * q.local;
    r.gradients = shared(b.gradients, q.trained_whole, q.trained_local, q.gradient_shards);
    r.master = shared(b.master, q.trained_whole, q.trained_local, q.state_shards);
    const double vectors = q.trained_vectors;
    r.states = shared(o.moments * b.moment + o.fixed_bytes, q.trained_whole - vectors, q.trained_local - vectors,
                      q.state_shards) +
               shared(o.vector_moments * b.moment + o.vector_fixed, vectors, vectors, q.state_shards);
    if (o.step_temporary) r.step = shared(b.step, q.trained_whole, q.trained_local, q.state_shards);
    if (w.optimizer_in_backward) {
      // Only one layer's gradients, or those of embedding or head, exist at a time.
      const double unit = std::max({q.trained_layer, q.embedding, q.head});
      r.gradients = std::min(r.gradients, b.gradients * unit);
      r.step = std::min(r.step, b.step * unit);
    }
  }
  r.reference = w.reference_copies * shared(b.compute, q.whole, q.local, q.weight_shards);
  return r;
}

/// Moves offloaded states to the host. Returns the bytes one GPU's share needs there.
double offload(const Workload& w, const Layout& layout, Resident& r) {
  if (layout.offload == Offload::None) {
    // Paged states leave the card whenever something else needs the room. They are plain pages: no slack.
    return w.optimizer.paged ? std::exchange(r.states, 0) : 0;
  }
  // The host keeps gradients in fp32 for the update, whatever the card accumulates in.
  const double gradient = has_adapters(w)
                              ? w.recipe.adapter_bytes
                              : std::max(1.0, w.recipe.states[static_cast<std::size_t>(w.precision)].gradients);
  double host = r.master + r.states + r.gradients / gradient * 4;
  r.master = r.states = r.step = 0;
  if (w.recipe.offload_gradients) r.gradients = 0;
  if (layout.offload == Offload::Full) {
    host += r.weights + r.upcast + r.reference;
    r.weights = r.upcast = r.reference = 0;
  }
  return host * w.recipe.host_slack;
}

double layer_input_bytes(const Workload& w, const Quantities& q) {
  return residual_bytes(w, q) * d(w.model.hidden) / q.hidden_split;
}

double whole_layer_bytes(const Quantities& q) { return q.bytes.compute * q.layer_elements(); }

void add_activations(const Workload& w, const Layout& layout, const Quantities& q, PhaseUse& use) {
  if (use.phase == Phase::OptimizerStep || w.model.fidelity == Fidelity::LowerBound) return;
  const Recipe& recipe = w.recipe;
  const double share = kept_share(w, layout.recompute);
  const double alive = q.tokens * q.kept_layers * q.in_flight;
  const double layer_input = layer_input_bytes(w, q);
  const double layer = whole_layer_bytes(q);
  const double recomputed = recomputed_layers(w, layout, q);
  use.kept_layers = q.kept_layers;
  use.recomputed_layers = recomputed;
  if (recomputed > 0) {
    // On the host only the inputs in transit stay on the card: one going, one coming.
    const double inputs = layout.recompute == Recompute::Offload ? std::min(2.0, recomputed) : recomputed * q.in_flight;
    use[Term::KeptActivations] = q.tokens * (inputs * layer_input + (q.kept_layers - recomputed) * q.in_flight * layer);
  } else {
    use[Term::KeptActivations] = alive * share * layer;
  }

  for (const Stack& stack : w.model.stacks) {
    const StackUse s = stack_use(w, layout, q, stack);
    use[Term::StackActivations] += s.tokens * (s.inputs * s.input * residual_bytes(w, q) +
                                               s.share * q.bytes.compute * (s.whole * s.elements + s.crossed));
  }

  const double scores_layer = recipe.score_bytes * q.tokens * d(w.sequence) * d(w.model.heads) / q.tensor;
  const bool eager = w.attention == Attention::Eager;
  if (eager && layout.recompute == Recompute::None) {
    use[Term::AttentionScores] = scores_layer * q.attention_share * q.kept_layers * q.in_flight;
  }
  const double dispatch_layer = q.tokens * q.bytes.compute * q.dispatched_elements;
  use[Term::ExpertDispatch] = share * dispatch_layer * q.mixture_share * q.kept_layers * q.in_flight;

  if (use.phase == Phase::Loss && q.has_head && w.model.lm_head) {
    const double logits = logit_bytes(w, q);
    // 6 B per hidden element: the final norm's fp32 input and bf16 output.
    // Where head and loss are not split by vocabulary, they are by sequence.
    use[Term::Logits] = q.tokens / q.tensor * (logits * d(w.model.vocab) + 6 * d(w.model.hidden));
  }
  if (use.phase == Phase::LayerBackward && q.kept_layers > 0) {
    const Recomputed again = recomputed_layer(w, layout, q);
    use[Term::RecomputedLayer] = (1 - share) * again.tokens * q.bytes.compute * again.elements;
    if (holds_input_gradients(w, q)) {
      use[Term::HeldGradients] = q.tokens * q.kept_layers * q.bytes.compute * d(w.model.hidden);
    }
    use[Term::ExpertDispatch] += (1 - share) * dispatch_layer;
    if (eager && layout.recompute != Recompute::None && q.attention_share > 0) {
      use[Term::AttentionScores] = scores_layer;
    }
  }
}

/// In the backward pass activations go as gradients come: all activations are there at its start, all gradients
/// and one layer at its end, a whole one if any is kept whole. The fuller one counts. Scores that are computed again
/// are those of one layer at either end.
void settle_backward(const Workload& w, const Layout& layout, const Quantities& q, PhaseUse& use) {
  double& gradients = use[Term::Gradients];
  double& kept = use[Term::KeptActivations];
  double& scores = use[Term::AttentionScores];
  if (use.kept_layers < 1) return;
  const bool whole = use.kept_layers > use.recomputed_layers;
  const double share = use.recomputed_layers > 0 ? 1 : kept_share(w, layout.recompute);
  const double last = q.tokens * (whole ? share * whole_layer_bytes(q) : layer_input_bytes(w, q));
  const double last_scores = layout.recompute == Recompute::None ? scores / use.kept_layers : scores;
  if (gradients + last + last_scores > kept + scores) {
    kept = last;
    scores = last_scores;
    use.kept_layers = 1;
    use.recomputed_layers = whole ? 0 : 1;
  } else {
    gradients = 0;
  }
}

/// What the allocator holds beyond what it has handed out.
double fragmentation(const Workload& w, const Quantities& q, const Resident& resident, const PhaseUse& use) {
  double dynamic = 0;
  for (const Term term : {Term::OptimizerTemporary, Term::KeptActivations, Term::StackActivations,
                          Term::RecomputedLayer, Term::AttentionScores, Term::Logits, Term::GatherBuffers,
                          Term::ReduceBuffers, Term::HeldGradients, Term::Dequantisation, Term::ExpertDispatch}) {
    dynamic += use[term];
  }
  const Recipe& r = w.recipe;
  if (w.expandable_segments) return std::max(r.fragmentation_gib * kGiBytes, r.fragmentation_share * dynamic);
  double cached = (q.weight_shards > 1 ? r.cached_share_sharded : r.cached_share) * dynamic;
  if (use[Term::Logits] > 0 && (w.loss == Loss::Standard || w.loss == Loss::Kernel)) {
    const double element = w.model.low_precision_logits ? q.bytes.compute : 4;
    cached += r.cached_logits * element * q.tokens / q.tensor * d(w.model.vocab);
  }
  if (use.phase != Phase::OptimizerStep) {
    const double pieces = std::max(0.0, resident.gradients - use[Term::Gradients]) + resident.step;
    cached += r.cached_step * std::max(0.0, pieces - r.cached_reuse * use[Term::Logits]);
  }
  return cached;
}

void add_reserve(const Workload& w, const Layout& layout, const Quantities& q, const Resident& resident,
                 PhaseUse& use) {
  const Recipe& r = w.recipe;
  use[Term::Context] = r.context_gib * kGiBytes;
  use[Term::Communicators] = r.lone_communicator_gib * kGiBytes;
  if (layout.gpus > 1) {
    use[Term::Communicators] =
        (r.communicator_gib + r.more_communicators_gib * std::max(0, communicator_groups(layout) - 1)) * kGiBytes;
  }
  use[Term::Fragmentation] = fragmentation(w, q, resident, use);
}

PhaseUse phase_use(const Workload& w, const Layout& layout, const Quantities& q, const Resident& r, Phase phase,
                   Stage stage) {
  PhaseUse use;
  use.phase = phase;
  use.stage = stage;
  use[Term::Weights] = r.weights;
  use[Term::EmbeddingUpcast] = r.upcast;
  use[Term::Master] = r.master;
  use[Term::OptimizerStates] = r.states;
  use[Term::ReferenceModel] = r.reference;
  // Accumulation keeps gradients from one micro-batch to the next; so do contiguous buffers.
  const bool gradients_stay =
      !w.optimizer_in_backward && (w.recipe.gradients_persist || accumulation_steps(w, layout) > 1);
  if (phase != Phase::Loss || gradients_stay) use[Term::Gradients] = r.gradients;
  if (phase == Phase::OptimizerStep) {
    use[Term::OptimizerTemporary] = r.step + (has_adapters(w) ? 0 : w.optimizer.matrix_bytes * q.largest_matrix);
  }
  use[Term::HeldGradients] = flat_gradients(w, layout, q);
  add_activations(w, layout, q, use);
  use[Term::GatherBuffers] = gather(w, layout, q, phase).bytes();
  use[Term::ReduceBuffers] = reduce(w, layout, q, phase).bytes();
  if (phase == Phase::LayerBackward) {
    if (!gradients_stay) settle_backward(w, layout, q, use);
    if (w.method == Method::QLora) use[Term::Dequantisation] = q.bytes.compute * q.largest_matrix;
  }
  add_reserve(w, layout, q, r, use);
  return use;
}

/// Added to the band for what no measured run of the class covers: a guess, in percent.
constexpr double kUncovered = 5;

Confidence confidence(const Workload& w, const Layout& layout) {
  using api::ConfidenceLevel;
  if (w.model.fidelity == Fidelity::LowerBound) return {ConfidenceLevel::LowerBound, 0};
  const bool model_parallel = layout.tensor > 1 || layout.pipeline > 1 || layout.context > 1;
  double band = layout.gpus == 1 ? w.bands.one_gpu : model_parallel ? w.bands.model_parallel : w.bands.sharded;
  if (w.attention == Attention::Eager) band += kUncovered;
  const bool measured = w.recipe.name != "generic" && w.model.fidelity == Fidelity::Exact && !w.model.text_only &&
                        w.model.stacks.empty() && w.model.recurrence.layers == 0 && w.model.lm_head &&
                        layout.offload == Offload::None;
  if (!measured) band += kUncovered;
  return {measured ? ConfidenceLevel::High : ConfidenceLevel::Approximate, band};
}

}  // namespace

double PhaseUse::on_card() const {
  double sum = 0;
  for (const double b : bytes) sum += b;
  return sum;
}

double PhaseUse::reserved() const { return on_card() - (*this)[Term::Context] - (*this)[Term::Communicators]; }

double PhaseUse::allocated() const { return reserved() - (*this)[Term::Fragmentation]; }

Estimate estimate(const Workload& workload, const Layout& layout) {
  Estimate out;
  double host_share = 0;
  const int stages = layout.pipeline > 1 ? 2 : 1;
  for (int s = 0; s < stages; ++s) {
    const Stage stage = s == 0 ? Stage::First : Stage::Last;
    const Quantities q = quantities(workload, layout, stage);
    Resident r = resident(workload, q);
    host_share = std::max(host_share, offload(workload, layout, r));
    for (const Phase phase : {Phase::Loss, Phase::LayerBackward, Phase::OptimizerStep}) {
      out.phases[out.phase_count++] = phase_use(workload, layout, q, r, phase, stage);
    }
  }
  for (std::size_t i = 1; i < out.phase_count; ++i) {
    if (out.phases[i].on_card() > out.phases[out.peak].on_card()) out.peak = i;
  }
  out.peak_bytes = sat_from_double(out.peak_use().on_card());
  // Each figure has its own peak phase.
  double allocated = 0, reserved = 0;
  for (std::size_t i = 0; i < out.phase_count; ++i) {
    const PhaseUse& use = out.phases[i];
    allocated = std::max(allocated, use.allocated());
    reserved = std::max(reserved, use.reserved());
  }
  out.allocated_bytes = sat_from_double(allocated);
  out.reserved_bytes = sat_from_double(reserved);
  out.host_bytes_per_node = sat_from_double(host_share * d(std::min(layout.gpus, layout.gpus_per_node)));
  out.confidence = confidence(workload, layout);
  out.lower_bound_only = workload.model.fidelity == Fidelity::LowerBound;
  return out;
}

std::string_view term_key(Term term) {
  static constexpr std::array<std::string_view, kTerms> kKeys{
      "weights",        "gradients",       "masterWeights",    "optimizerStates", "optimizerTemporary",
      "referenceModel", "keptActivations", "stackActivations", "recomputedLayer", "attentionScores",
      "logits",         "embeddingUpcast", "gatherBuffers",    "reduceBuffers",   "heldGradients",
      "dequantisation", "expertDispatch",  "context",          "communicators",   "fragmentation"};
  return kKeys[static_cast<std::size_t>(term)];
}

std::string_view term_name(Term term) {
  static constexpr std::array<std::string_view, kTerms> kNames{
      "Weights",         "Gradients",        "Master weights", "Optimizer states", "Optimizer step",
      "Reference model", "Kept activations", "Further stacks", "Recomputed layer", "Attention scores",
      "Logits",          "k-bit upcast",     "Gather buffers", "Reduce buffers",   "Held gradients",
      "Dequantisation",  "Expert dispatch",  "CUDA context",   "Communicators",    "Fragmentation"};
  return kNames[static_cast<std::size_t>(term)];
}

std::string_view phase_text(Phase phase) {
  switch (phase) {
    case Phase::Loss: return "at the loss";
    case Phase::LayerBackward: return "in the backward of a layer";
    case Phase::OptimizerStep: return "in the optimizer step";
  }
  return "";
}

}  // namespace loadline::estimator
