#include "estimator/term_sum.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"

namespace loadline::estimator {

std::string number(double v) {
  if (v < 1e7 && std::abs(v - std::round(v)) < 1e-9) return fixed(v, 0);
  if (v < 1e3) {
    std::string text = fixed(v, 4);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
  }
  int exponent = static_cast<int>(std::floor(std::log10(v)));
  double mantissa = v / std::pow(10, exponent);
  if (mantissa >= 9.99995) {
    mantissa /= 10;
    ++exponent;
  }
  return fixed(mantissa, 4) + "e" + std::to_string(exponent);
}

std::string over(double divisor) { return divisor > 1 ? " / " + number(divisor) : ""; }

namespace {

constexpr double kGiBytes = static_cast<double>(kGiB);

std::string per(double v) { return number(v) + " B"; }

std::string float_name(double bytes) { return bytes >= 4 ? "fp32" : "bf16"; }

std::string shared_count(double whole, double local, double shards) { return number(shards > 1 ? whole : local); }

std::string weights_sum(const Sum& s) {
  const Quantities& q = s.q;
  const double n = q.weight_shards;
  if (!has_adapters(s.w)) {
    const bool copies = n <= 1 && q.bytes.compute_copy > 0;
    const std::string each =
        copies ? "(" + number(q.bytes.weights) + " + " + number(q.bytes.compute_copy) + ") B" : per(q.bytes.weights);
    return float_name(q.bytes.weights) + " " + shared_count(q.whole, q.local, n) + " x " + each + over(n);
  }
  std::string text;
  const double quantised = n > 1 ? q.quantised_whole : q.quantised_local;
  const double rest = (n > 1 ? q.whole : q.local) - quantised;
  if (quantised > 0) text = "4-bit " + number(quantised) + " x " + per(s.w.quantised_bytes) + " + ";
  text += float_name(q.bytes.compute) + " " + number(rest) + " x " + per(q.bytes.compute);
  if (q.adapters > 0) text += " + adapters " + number(q.adapters) + " x " + per(s.w.recipe.adapter_bytes);
  if (q.trained_whole > 0) text += " + embedding, head " + number(q.trained_whole) + " x " + per(q.bytes.compute);
  return n > 1 ? "(" + text + ")" + over(n) : text;
}

/// Bytes times trained parameters, or adapters, over shards.
std::string trained_sum(const Sum& s, double bytes, double shards, const std::string& words) {
  const std::string count = has_adapters(s.w) ? "adapters " + number(s.q.adapters)
                                              : shared_count(s.q.trained_whole, s.q.trained_local, shards);
  return words + count + " x " + per(bytes) + over(shards);
}

/// Embedding and head, trained whole beside adapters.
std::string vocabulary_sum(const Sum& s, double bytes, double shards) {
  if (!has_adapters(s.w) || s.q.trained_whole <= 0) return "";
  return " + embedding, head " + number(s.q.trained_whole) + " x " + per(bytes) + over(shards);
}

/// With an optimizer that steps in the backward pass: the largest of what exists one after the other, when that is less
/// than everything. Empty otherwise.
std::string one_at_a_time(const Sum& s, double bytes, double shards) {
  if (!s.w.optimizer_in_backward || has_adapters(s.w)) return "";
  const double unit = std::max({s.q.trained_layer, s.q.embedding, s.q.head});
  if (unit >= (shards > 1 ? s.q.trained_whole / shards : s.q.trained_local)) return "";
  return "one at a time, " + number(unit) + " x " + per(bytes);
}

std::string gradients_sum(const Sum& s, double bytes) {
  if (std::string one = one_at_a_time(s, bytes, s.q.gradient_shards); !one.empty()) return one;
  std::string text = trained_sum(s, bytes, s.q.gradient_shards, float_name(bytes) + " ");
  text += vocabulary_sum(s, s.q.bytes.compute, s.q.gradient_shards);
  return text;
}

std::string temporary_sum(const Sum& s) {
  if (s.w.optimizer.matrix_bytes > 0 && !has_adapters(s.w)) {
    return "on one matrix, " + number(s.q.largest_matrix) + " x " + per(s.w.optimizer.matrix_bytes);
  }
  const double bytes = has_adapters(s.w) ? s.w.recipe.adapter_bytes : s.q.bytes.step;
  if (std::string one = one_at_a_time(s, bytes, s.q.state_shards); !one.empty()) return one;
  return trained_sum(s, bytes, s.q.state_shards, "temporary ") + vocabulary_sum(s, s.q.bytes.compute, s.q.state_shards);
}

std::string held_sum(const Sum& s) {
  const Quantities& q = s.q;
  if (flat_gradients(s.w, s.l, q) > 0) {
    return "whole flat parameters " + number(q.local - q.quantised_local) + " x " + per(q.bytes.compute);
  }
  return "of layer inputs, " + number(q.tokens) + " tokens x " + number(q.kept_layers) + " layers x " +
         number(static_cast<double>(s.w.model.hidden)) + " x " + per(q.bytes.compute);
}

std::string states_sum(const Sum& s) {
  const OptimizerRow& o = s.w.optimizer;
  const Quantities& q = s.q;
  const double moment = has_adapters(s.w) ? s.w.recipe.adapter_bytes : q.bytes.moment;
  const double matrix_bytes = o.moments * moment + o.fixed_bytes;
  const double vector_bytes = o.vector_moments * moment + o.vector_fixed;
  if (has_adapters(s.w)) {
    return trained_sum(s, matrix_bytes, q.state_shards, o.label + " ") +
           vocabulary_sum(s, o.vector_moments * q.bytes.compute + o.vector_fixed, q.state_shards);
  }
  if (matrix_bytes == vector_bytes) return trained_sum(s, matrix_bytes, q.state_shards, o.label + " ");
  const double trained = q.state_shards > 1 ? q.trained_whole : q.trained_local;
  const std::string both = number(trained - q.trained_vectors) + " x " + per(matrix_bytes) + " + " +
                           number(q.trained_vectors) + " x " + per(vector_bytes);
  return o.label + " " + (q.state_shards > 1 ? "(" + both + ")" + over(q.state_shards) : both);
}

std::string flights(const Quantities& q) {
  return q.in_flight > 1 ? " x " + number(q.in_flight) + " micro-batches" : "";
}

std::string kept_sum(const Sum& s) {
  const std::string tokens = number(s.q.tokens) + " tokens x ";
  const auto layers = [&](double count) { return tokens + number(count) + (count == 1 ? " layer x " : " layers x "); };
  const std::string whole = number(s.q.layer_elements()) + " x " + per(s.q.bytes.compute);
  const std::string hidden = number(static_cast<double>(s.w.model.hidden));
  const double kept = s.use.kept_layers;
  const double recomputed = s.use.recomputed_layers;
  if (recomputed <= 0) {
    const double share = recomputed_layers(s.w, s.l, s.q) > 0 ? 1 : kept_share(s.w, s.l.recompute);
    return layers(kept) + whole + (share < 1 ? " x " + number(share) : "") + flights(s.q);
  }
  const bool offloaded = s.l.recompute == Recompute::Offload;
  std::string text = layers(offloaded ? std::min(2.0, recomputed) : recomputed) + hidden + " x " +
                     per(residual_bytes(s.w, s.q)) + over(s.q.hidden_split) + (offloaded ? "" : flights(s.q));
  if (kept > recomputed) text += " + " + layers(kept - recomputed) + whole + flights(s.q);
  return text;
}

std::string stacks_sum(const Sum& s) {
  const std::string bytes = " x " + per(s.q.bytes.compute);
  std::vector<std::string> parts;
  for (const Stack& stack : s.w.model.stacks) {
    const StackUse use = stack_use(s.w, s.l, s.q, stack);
    if (use.tokens <= 0) continue;
    const std::string tokens = number(use.tokens) + " tokens x ";
    const std::string share = use.share < 1 ? " x " + number(use.share) : "";
    if (use.inputs > 0) {
      parts.push_back(tokens + number(use.inputs) + " layers x " + number(use.input) + " x " +
                      per(residual_bytes(s.w, s.q)));
    }
    if (use.whole > 0) {
      parts.push_back(tokens + number(use.whole) + " layers x " + number(use.elements) + bytes + share);
    }
    if (use.crossed > 0) parts.push_back("crossed " + tokens + number(use.crossed) + bytes + share);
  }
  return join(parts, " + ");
}

std::string layer_sum(const Sum& s) {
  const double share = 1 - kept_share(s.w, s.l.recompute);
  const Recomputed layer = recomputed_layer(s.w, s.l, s.q);
  return number(layer.tokens) + " tokens x " + number(layer.elements) + " x " + per(s.q.bytes.compute) +
         (share < 1 ? " x " + number(share) : "") +
         (layer.stack != nullptr ? " of the " + std::string(stack_name(layer.stack->kind)) : "");
}

std::string scores_sum(const Sum& s) {
  std::string text = number(s.q.tokens) + " tokens x " + number(static_cast<double>(s.w.sequence)) + " x " +
                     number(static_cast<double>(s.w.model.heads)) + " heads x " + per(s.w.recipe.score_bytes) +
                     over(s.q.tensor);
  if (s.l.recompute == Recompute::None) {
    text += " x " + number(s.q.attention_share * s.use.kept_layers) + " layers" + flights(s.q);
  }
  return text;
}

std::string logits_sum(const Sum& s) {
  return number(s.q.tokens) + " tokens x (" + number(static_cast<double>(s.w.model.vocab)) + " x " +
         per(logit_bytes(s.w, s.q)) + " + " + number(static_cast<double>(s.w.model.hidden)) + " x 6 B)" +
         over(s.q.tensor);
}

std::string gather_sum(const Sum& s) {
  const Gather g = gather(s.w, s.l, s.q, s.use.phase);
  std::vector<std::string> parts;
  if (g.live > 0) {
    parts.push_back("live " + number(g.live) + " x " + per(g.element_bytes));
  } else if (g.units > 0) {
    parts.push_back(number(g.units) + (g.units == 1 ? " layer x " : " layers x ") + number(g.layer_bytes) + " B");
  }
  if (g.root > 0) parts.push_back("embedding, head " + number(g.root) + " x " + per(g.element_bytes));
  if (g.ring > 0) parts.push_back("ring " + number(g.ring) + " x " + per(g.element_bytes));
  return join(parts, " + ");
}

std::string reduce_sum(const Sum& s) {
  const Reduce r = reduce(s.w, s.l, s.q, s.use.phase);
  std::vector<std::string> parts;
  if (r.elements > 0) parts.push_back(number(r.elements) + " x " + per(r.element_bytes));
  if (r.buckets > 0) parts.push_back("buckets " + number(r.buckets) + " B");
  return join(parts, " + ");
}

std::string dispatch_sum(const Sum& s) {
  const double share = kept_share(s.w, s.l.recompute);
  const double kept = share * s.q.mixture_share * s.q.kept_layers * s.q.in_flight;
  const double one = s.use.phase == Phase::LayerBackward ? 1 - share : 0;
  return number(s.q.tokens) + " tokens x " + number(s.q.dispatched_elements) + " x " + per(s.q.bytes.compute) + " x " +
         number(kept + one) + " layers";
}

double dynamic_bytes(const PhaseUse& use) {
  return use.allocated() - use[Term::Weights] - use[Term::Gradients] - use[Term::Master] - use[Term::OptimizerStates] -
         use[Term::ReferenceModel] - use[Term::EmbeddingUpcast];
}

}  // namespace

std::string term_sum(const Sum& s, Term term) {
  const Recipe& r = s.w.recipe;
  const Quantities& q = s.q;
  const bool adapters = has_adapters(s.w);
  switch (term) {
    case Term::Weights: return weights_sum(s);
    case Term::Gradients: {
      const double bytes = adapters ? r.adapter_bytes : q.bytes.gradients;
      return gradients_sum(s, bytes);
    }
    case Term::Master: return trained_sum(s, q.bytes.master, q.state_shards, float_name(q.bytes.master) + " ");
    case Term::OptimizerStates: return states_sum(s);
    case Term::OptimizerTemporary: return temporary_sum(s);
    case Term::ReferenceModel:
      return number(s.w.reference_copies) + " copy x " + shared_count(q.whole, q.local, q.weight_shards) + " x " +
             per(q.bytes.compute) + over(q.weight_shards);
    case Term::KeptActivations: return kept_sum(s);
    case Term::StackActivations: return stacks_sum(s);
    case Term::RecomputedLayer: return layer_sum(s);
    case Term::AttentionScores: return scores_sum(s);
    case Term::Logits: return logits_sum(s);
    case Term::EmbeddingUpcast:
      return "fp32 instead of bf16 " +
             number(q.weight_shards > 1 ? q.whole - q.quantised_whole : q.local - q.quantised_local) + " x 2 B" +
             over(q.weight_shards);
    case Term::GatherBuffers: return gather_sum(s);
    case Term::ReduceBuffers: return reduce_sum(s);
    case Term::HeldGradients: return held_sum(s);
    case Term::Dequantisation: return "largest matrix " + number(q.largest_matrix) + " x " + per(q.bytes.compute);
    case Term::ExpertDispatch: return dispatch_sum(s);
    case Term::Context: return "driver context and kernels " + number(r.context_gib) + " GiB";
    case Term::Communicators: {
      if (s.l.gpus <= 1) return "NCCL, a group of one " + number(r.lone_communicator_gib) + " GiB";
      const int further = communicator_groups(s.l) - 1;
      std::string first = "NCCL " + number(r.communicator_gib) + " GiB";
      if (further <= 0) return first;
      return first + " + " + number(r.more_communicators_gib) + " GiB x " + std::to_string(further) + " further groups";
    }
    case Term::Fragmentation: {
      if (!s.w.expandable_segments) return "the allocator's cache of blocks that nothing else fits into";
      const double dynamic = dynamic_bytes(s.use) / kGiBytes;
      if (r.fragmentation_share * dynamic <= r.fragmentation_gib)
        return "at least " + number(r.fragmentation_gib) + " GiB";
      return number(r.fragmentation_share) + " x " + fixed(dynamic, 2) + " GiB that comes and goes";
    }
  }
  return "";
}

}  // namespace loadline::estimator
