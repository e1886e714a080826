#include "estimator/quantities.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "estimator/estimate.h"

namespace loadline::estimator {
namespace {

double d(std::int64_t value) { return static_cast<double>(value); }

/// LayerNorm has a fused kernel everywhere; an RMSNorm written in Python upcasts. A compiler
/// computes norms again instead of keeping what they work on...
double norm_copies_of(const Block& b, const Workload& w) {
  if (w.compile) return 0;
  return b.norm_bias ? std::min(1.0, w.recipe.norm_copies) : w.recipe.norm_copies;
}

/// ...and writes a residual's sum where its first term was.
double block_copies_of(const Workload& w) { return w.recipe.block_copies - (w.compile ? 1 : 0); }

/// Of so many layers, those whose tensors are all computed again.
double recomputed_of(double layers, const Workload& w, const Layout& layout) {
  if (!layout.recomputes_layers()) return 0;
  return std::ceil(layers / d(w.recompute_every));
}

/// Head-size elements that attention keeps per token: queries, keys, values, output.
double head_elements(const Block& m, double norm_copies) {
  if (m.mla.kv_rank > 0) {
    const double qk = d(m.heads) * d(m.mla.nope_dim + m.mla.rope_dim);
    const double value = d(m.heads) * d(m.mla.value_dim);
    return 2 * qk + 2 * value + (1 + norm_copies) * d(m.mla.q_rank + m.mla.kv_rank);
  }
  const double q = d(m.heads) * d(m.head_dim);
  const double kv = d(m.kv_heads) * d(m.head_dim);
  const double normed = m.qk_norm == QkNorm::None ? 0 : norm_copies * (q + kv);
  // A gate, its sigmoid and the gated output come to the ungated tensors.
  const double gated = m.gated_attention ? 3 * q : 0;
  return 2 * q + 2 * kv + normed + gated;
}

/// What a recurrence keeps per token: its projections, the convolved part of them, and its output
/// before and after the gate. The states of the scan are computed anew in the backward pass
/// (state-spaces/mamba selective_scan_interface.py, ssd_combined.py).
double recurrence_elements(const Block& b) {
  const Recurrence& r = b.recurrence;
  const double projected = recurrence_projection(b);
  const double low_rank = r.kind == Mixing::Mamba1 ? d(r.inner) + d(r.rank) + 2 * d(r.state) : 0;
  const double inner = r.kind == Mixing::ShortConv ? d(b.hidden) : d(r.inner);
  return projected + low_rank + (projected - inner) + 2 * inner;
}

/// A frozen matrix needs no input for its own gradient: with adapters only the inputs of
/// adapted matrices are kept. (Attention keeps its own output whatever o is.)
struct KeptInputs {
  double attention = 1, mlp = 1, down = 1;
};

KeptInputs kept_inputs(const Workload& w) {
  // The kernels of 4-bit matrices keep their inputs.
  if (w.method != Method::Lora) return {};
  const auto adapted = [&](std::initializer_list<const char*> names) {
    if (w.lora.targets.empty()) return 1.0;
    for (const char* name : names) {
      if (std::find(w.lora.targets.begin(), w.lora.targets.end(), name) != w.lora.targets.end()) return 1.0;
    }
    return 0.0;
  };
  return {adapted({"q", "k", "v"}), adapted({"gate", "up"}), adapted({"down"})};
}

void fill_layer_elements(const Workload& w, const Layout& layout, Quantities& q) {
  const Model& m = w.model;
  const Recipe& recipe = w.recipe;
  const double norm_copies = norm_copies_of(m, w);
  const KeptInputs inputs = kept_inputs(w);
  const double outputs = std::max(0.0, d(m.norms_per_layer) - 2) + inputs.attention + inputs.mlp;
  // Adapters of higher precision work on a copy of their matrix's input.
  const double casts = has_adapters(w) && recipe.adapter_bytes > q.bytes.compute ? w.adapted_inputs : 0;
  q.hidden_elements = casts + (d(m.norms_per_layer) * norm_copies + outputs + block_copies_of(w)) * d(m.hidden);
  const double layers = std::max(1.0, d(m.layers));
  const double attention = head_elements(m, norm_copies);
  // Cross attention keeps its queries and output here, its keys and values with the encoder's tokens.
  const double crossed = m.cross_attention ? 2 * d(m.heads) * d(m.head_dim) : 0;
  const double recurrence = m.recurrence.layers > 0 ? recurrence_elements(m) : 0;
  q.attention_share = m.attention_layers() / layers;
  q.head_elements = q.attention_share * attention + crossed + d(m.recurrence.layers) / layers * recurrence;
  // Some models run both side by side in one layer (Falcon-H1).
  const bool side_by_side = m.attention_layers() + d(m.recurrence.layers) > layers;
  q.largest_head_elements =
      crossed + (side_by_side ? attention + recurrence : std::max(q.attention_share > 0 ? attention : 0, recurrence));

  const double copies = (m.mlp_matrices == 3 ? recipe.mlp_copies : recipe.plain_mlp_copies) - (1 - inputs.down);
  const double dense = copies * d(m.ffn);
  // Where a group shares its batch, each rank keeps rows for all choices of all tokens, its experts' or not.
  const bool exchanged = layout.expert > 1 && dense_copies(w, layout) == 1;
  const double imbalance = exchanged ? recipe.expert_imbalance : 1;
  const double mixture = mixture_layers(m);
  const double routed =
      mixture > 0
          ? copies * (d(m.moe.top_k) * d(m.moe.expert_ffn) * imbalance + d(m.moe.shared_ffn)) + 2 * d(m.moe.experts)
          : 0;
  q.mixture_share = mixture / layers;
  const double dense_share = dense_layers(m) / layers;
  q.mlp_elements = q.mixture_share * routed + dense_share * dense;
  q.largest_mlp_elements = std::max(mixture > 0 ? routed : 0, dense_share > 0 ? dense : 0);
  if (mixture > 0) q.dispatched_elements = 2 * d(m.moe.top_k) * d(m.hidden) * imbalance;
}

/// Trained share of a stage for method freeze: the leading layers of the model are frozen,
/// so the last stage is trained first.
double trained_layers_of(const Workload& w, const Quantities& q, Stage stage, double pipeline) {
  if (w.method != Method::Freeze) return q.layers;
  const double trained = d(w.model.layers - w.frozen_layers);
  if (pipeline <= 1 || stage == Stage::Last) return std::min(q.layers, trained);
  return std::max(0.0, trained - (d(w.model.layers) - q.layers));
}

void fill_parameters(const Workload& w, const Layout& layout, Stage stage, Quantities& q) {
  const Model& m = w.model;
  const ParameterCount& p = w.parameters;
  const double t = q.tensor;
  const double e = d(layout.expert);
  const double pipeline = d(layout.pipeline);
  if (m.fidelity == Fidelity::LowerBound) {
    const double share = p.total / (t * pipeline);
    q.whole = q.local = share;
    if (w.method == Method::QLora) q.quantised_whole = q.quantised_local = share;
    if (!has_adapters(w)) q.trained_whole = q.trained_local = share;
    return;
  }
  const double body = (p.layer.attention + p.layer.mlp) / t + p.layer.norms;
  const double experts = p.layer.experts / t;
  // A tied head on its own stage needs its own copy of the embedding.
  const bool separate_head = layout.pipeline > 1;
  const double tied_copy = m.tied && separate_head ? d(m.vocab) * d(m.hidden) : 0;
  q.embedding = q.has_embedding ? p.embedding / t : 0;
  q.head = q.has_head ? (p.head + tied_copy) / t : 0;
  q.other = q.has_embedding ? p.other / t : 0;
  const double final_norm = q.has_head ? p.final_norm : 0;
  const double vocabulary = q.embedding + q.head + final_norm + q.other;
  const double whole_experts = experts / d(dense_copies(w, layout));
  q.layer = body + experts / e;
  q.whole = q.layers * (body + whole_experts) + vocabulary;
  q.local = q.layers * q.layer + vocabulary;
  q.largest_matrix = d(m.hidden) * d(std::max(m.ffn, m.moe.expert_ffn)) / t;

  if (w.method == Method::QLora) {
    const double quantised_experts = experts / e;
    const double other = std::max(0.0, p.linear - p.experts) / std::max(1.0, d(m.layers)) / t;
    q.quantised_whole = q.layers * (other + whole_experts);
    q.quantised_local = q.layers * (other + quantised_experts);
  }
  if (has_adapters(w)) {
    const double own = w.adapters - w.expert_adapters + w.expert_adapters / e;
    q.adapters = own * (q.layers / std::max(1.0, d(m.layers))) / t;
    if (w.lora.train_embeddings) q.trained_whole = q.trained_local = q.embedding + q.head;
    return;
  }
  const double trained_layers = trained_layers_of(w, q, stage, pipeline);
  const bool leading = w.method != Method::Freeze;
  const double trained_vocabulary = (leading ? q.embedding : 0) + q.head + final_norm;
  const double trained_other = leading ? q.other : 0;
  q.kept_layers = trained_layers;
  q.trained_layer = trained_layers > 0 ? q.layer : 0;
  q.trained_whole = trained_layers * (body + whole_experts) + trained_vocabulary + trained_other;
  q.trained_local = trained_layers * q.layer + trained_vocabulary + trained_other;
  q.trained_vectors = trained_layers * p.layer.norms + trained_vocabulary;
}

/// One forward, one backward at a time: stage i of p holds p - i micro-batches. With v chunks per stage
/// (Narayanan et al., arXiv 2104.04473) it has run 2 (p - i - 1) + (v - 1) p + 1 chunks before its first backward.
double micro_batches_alive(const Layout& layout, Stage stage) {
  const double p = d(layout.pipeline);
  const double v = d(layout.virtual_stages);
  const double ahead = stage == Stage::First ? p - 1 : 0;
  return v > 1 ? (2 * ahead + (v - 1) * p + 1) / v : ahead + 1;
}

}  // namespace

Quantities quantities(const Workload& w, const Layout& layout, Stage stage) {
  Quantities q;
  q.bytes = w.recipe.states[static_cast<std::size_t>(w.precision)];
  q.tensor = d(layout.tensor);
  q.hidden_split = w.recipe.sequence_parallel ? q.tensor : 1;
  const double pipeline = d(layout.pipeline);
  q.layers = std::ceil(d(w.model.layers) / pipeline);
  q.has_embedding = layout.pipeline == 1 || stage == Stage::First;
  q.has_head = layout.pipeline == 1 || stage == Stage::Last;
  q.tokens = d(layout.micro_batch) * w.sequences_per_sample * d(w.sequence) / d(layout.context);
  q.in_flight = std::min(micro_batches_alive(layout, stage), d(accumulation_steps(w, layout)));
  // Adapters sit in every layer; nothing is kept when nothing at all is trained.
  q.kept_layers = has_adapters(w) && w.adapters <= 0 ? 0 : q.layers;

  const double shards = d(layout.shards());
  if (layout.sharding >= Sharding::Zero1) q.state_shards = shards;
  if (layout.sharding >= Sharding::Zero2) q.gradient_shards = shards;
  if (layout.sharding >= Sharding::Zero3) q.weight_shards = shards;
  fill_layer_elements(w, layout, q);
  fill_parameters(w, layout, stage, q);
  return q;
}

bool trains_stack(const Workload& w, const Stack& stack) {
  if (has_adapters(w)) return stack.kind == Stack::Kind::Encoder && w.adapters > 0;
  return w.method != Method::Freeze;
}

StackUse stack_use(const Workload& w, const Layout& layout, const Quantities& q, const Stack& stack) {
  StackUse use;
  // What comes before the main stack lies where its embedding does.
  if (!q.has_embedding || !trains_stack(w, stack)) return use;
  const double length = stack_tokens(stack, w.sequence);
  const double norm_copies = norm_copies_of(stack, w);
  const double copies = stack.mlp_matrices == 3 ? w.recipe.mlp_copies : w.recipe.plain_mlp_copies;
  use.tokens = d(layout.micro_batch) * w.sequences_per_sample * length;
  const double recomputed = recomputed_of(d(stack.layers), w, layout);
  use.inputs = layout.recompute == Recompute::Offload ? std::min(2.0, recomputed) : recomputed;
  use.whole = d(stack.layers) - recomputed;
  use.share = layout.recompute == Recompute::Selective ? kept_share(w, layout.recompute) : 1;
  use.input = d(stack.hidden) / q.hidden_split;
  // As in the main stack: each norm's copies, the inputs of attention and MLP, and the block's own.
  use.elements = (d(stack.norms_per_layer) * (norm_copies + 1) + block_copies_of(w)) * use.input +
                 (head_elements(stack, norm_copies) + copies * d(stack.ffn)) / q.tensor;
  if (w.attention == Attention::Eager && layout.recompute == Recompute::None) {
    use.elements += w.recipe.score_bytes / q.bytes.compute * length * d(stack.heads) / q.tensor;
  }
  if (w.model.cross_attention && &stack == w.model.stacks.data()) {
    const double layers = d(w.model.layers) - recomputed_of(d(w.model.layers), w, layout);
    use.crossed = layers * 2 * d(w.model.kv_heads) * d(w.model.head_dim) / q.tensor;
  }
  return use;
}

Recomputed recomputed_layer(const Workload& w, const Layout& layout, const Quantities& q) {
  Recomputed largest{q.tokens, q.largest_layer_elements(), nullptr};
  for (const Stack& stack : w.model.stacks) {
    const StackUse use = stack_use(w, layout, q, stack);
    if (use.tokens * use.elements > largest.tokens * largest.elements) largest = {use.tokens, use.elements, &stack};
  }
  return largest;
}

Gather gather(const Workload& w, const Layout& layout, const Quantities& q, Phase phase) {
  Gather g;
  g.element_bytes = q.bytes.compute;
  if (phase == Phase::OptimizerStep) return g;
  const Recipe& recipe = w.recipe;
  if (q.weight_shards > 1 || layout.offload == Offload::Full) {
    // With a pipeline weights stay whole from one micro-batch to the next.
    const double units = phase == Phase::Loss ? recipe.gathered_at_loss : recipe.gathered_units;
    g.units = layout.pipeline > 1 ? q.layers : std::min(units, q.layers);
    const double quantised = q.quantised_local / std::max(1.0, q.layers);
    g.layer_bytes = w.quantised_bytes * quantised + q.bytes.compute * std::max(0.0, q.layer - quantised);
    const double live = std::min(recipe.live_parameters, q.local);
    if (live * q.bytes.compute > g.units * g.layer_bytes) g.live = live;
    if (recipe.root_gathered) {
      g.root = q.embedding + q.head;
    } else if (phase == Phase::Loss) {
      g.root = q.head;
    }
  }
  // Embedding and head that tensor parallelism does not split are gathered from its ranks too.
  if (!recipe.vocabulary_parallel && q.tensor > 1) g.root = (q.embedding + q.head) * q.tensor;
  if (layout.context > 1 && phase == Phase::LayerBackward) {
    // Two blocks, the one in use and the one arriving, each of keys and values.
    g.ring = 4 * q.tokens * d(w.model.kv_heads) * d(w.model.head_dim) / q.tensor;
  }
  return g;
}

Reduce reduce(const Workload& w, const Layout& layout, const Quantities& q, Phase phase) {
  Reduce r;
  const Recipe& recipe = w.recipe;
  const bool adapters = has_adapters(w);
  if (q.gradient_shards > 1) {
    r.element_bytes = adapters ? recipe.adapter_bytes : recipe.reduce_bytes;
    if (phase == Phase::LayerBackward) r.elements = adapters ? q.adapters / std::max(1.0, q.layers) : q.trained_layer;
    // A pipeline adds up whole gradients and scatters them after its last micro-batch.
    if (layout.pipeline > 1 && q.weight_shards > 1 && phase != Phase::OptimizerStep && !adapters) {
      r.elements = q.trained_local;
    }
  } else if (layout.sharding == Sharding::None && layout.data > 1 && recipe.ddp_copy) {
    r.elements = adapters ? q.adapters : q.trained_local;
    r.element_bytes = adapters ? recipe.adapter_bytes : q.bytes.gradients;
  }
  if (layout.sharding != Sharding::None) {
    r.buckets = std::min(recipe.bucket_bytes, 4 * (adapters ? q.adapters : q.trained_local));
  }
  return r;
}

double kept_share(const Workload& w, Recompute recompute) {
  if (recompute == Recompute::None) return 1;
  return recompute == Recompute::Selective ? w.recipe.selective_share : 0;
}

double logit_bytes(const Workload& w, const Quantities& q) {
  const double bytes = w.recipe.logits[static_cast<std::size_t>(w.loss)];
  // Without a copy in fp32: logits, the shifted copy, log-softmax and gradient, all in compute precision.
  // Autocast computes the loss in fp32 all the same.
  const bool pure = w.precision == Precision::Bf16;
  if (w.model.low_precision_logits && pure && w.loss == Loss::Standard) return std::min(bytes, 4 * q.bytes.compute);
  return bytes;
}

double recomputed_layers(const Workload& w, const Layout& layout, const Quantities& q) {
  return recomputed_of(q.kept_layers, w, layout);
}

int communicator_groups(const Layout& layout) {
  int groups = 0;
  for (const std::int64_t degree : {layout.tensor, layout.pipeline, layout.context, layout.expert, layout.data}) {
    if (degree > 1) ++groups;
  }
  return groups;
}

double residual_bytes(const Workload& w, const Quantities& q) {
  if (q.weight_shards > 1 && w.recipe.sharded_low_precision) return q.bytes.compute;
  // k-bit preparation casts the embedding to fp32, and the stream follows where 4-bit matrices answer in the
  // type they were asked in (bitsandbytes; GPTQ kernels answer in 16 bits).
  if (w.kbit_upcast && w.quantization != Quantization::Gptq) return std::max(4.0, q.bytes.residual);
  // A base loaded in low precision for adapters has a low-precision stream.
  return has_adapters(w) ? q.bytes.compute : q.bytes.residual;
}

}  // namespace loadline::estimator
