#include "estimator/step_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/text.h"

namespace loadline::estimator {
namespace {

// Constants of the model. Each is explained, with its source, in docs/placement.md.
constexpr double kAttentionShare = 0.75;  // attention kernels against matmuls, from MFU over sequence length
constexpr double kMoeShare = 0.42;        // mixture models reach 15-25 % where dense ones reach 47
constexpr double kFp8Share = 0.78;        // of the efficiency at 16 bits, of a peak twice as high
constexpr double kNvLinkShare = 0.78;     // all-reduce 235 GB/s of 300 on A100
constexpr double kPcieShare = 0.5;        // several cards share a root complex
constexpr double kNetworkShare = 0.85;    // 340 Gbit/s of 400 on EFA
constexpr double kOverlap = 0.8;          // of communication that can hide behind compute does
constexpr double kMemoryShare = 0.8;      // of the card's memory bandwidth
constexpr double kHostGBPerSecond = 25;   // host memory bandwidth per GPU for an offloaded optimizer step
constexpr double kQuantisedBytes = 0.56;  // a gathered 4-bit weight with its scales
constexpr double kGiga = 1e9;

bool adapters_only(const Workload& workload) {
  return workload.method == Method::Lora || workload.method == Method::QLora;
}

// Parameters a token is multiplied with: the embedding table is only looked up, unless it
// serves as the head too.
double matmul_parameters(const Workload& workload) {
  const ParameterCount& count = workload.parameters;
  const Model& model = workload.model;
  double parameters = model.tied && model.lm_head ? count.active : std::max(0.0, count.active - count.embedding);
  // A further stack passes its own number of tokens, counted here per token of the main one.
  for (const Stack& stack : model.stacks) {
    const double passes =
        stack_tokens(stack, workload.sequence) / std::max(1.0, static_cast<double>(workload.sequence));
    parameters += stack_parameters(stack) * (passes - 1);
  }
  return std::max(0.0, parameters);
}

// Of these, the share in the routed experts that a token passes.
double routed_share(const Workload& workload) {
  const Experts& moe = workload.model.moe;
  const double all = matmul_parameters(workload);
  if (moe.experts <= 0 || all <= 0) return 0;
  return std::min(
      1.0, workload.parameters.experts * static_cast<double>(moe.top_k) / static_cast<double>(moe.experts) / all);
}

double attention_flops_forward(const Workload& workload) {
  const Model& model = workload.model;
  double length = static_cast<double>(workload.sequence);
  if (model.sliding_window > 0) length = std::min(length, static_cast<double>(model.sliding_window));
  double flops =
      4.0 * model.attention_layers() * static_cast<double>(model.heads) * static_cast<double>(model.head_dim) * length;
  for (const Stack& stack : model.stacks) {
    const double tokens = stack_tokens(stack, workload.sequence);
    const double passes = tokens / std::max(1.0, static_cast<double>(workload.sequence));
    flops +=
        4.0 * static_cast<double>(stack.layers * stack.heads) * static_cast<double>(stack.head_dim) * tokens * passes;
  }
  return flops;
}

// Matmul FLOPs per token of forward and backward.
double matmul_flops(const Workload& workload) {
  const double all = matmul_parameters(workload);
  switch (workload.method) {
    case Method::Lora:
    case Method::QLora: return 4 * all + 6 * workload.adapters;  // no gradient of the frozen weights
    case Method::Freeze: {
      const double trained = std::min(all, workload.trained);
      return 6 * trained + 2 * (all - trained);  // the leading layers only run forward
    }
    case Method::Full: break;
  }
  return 6 * all;
}

struct Flops {
  double matmul = 0;
  double attention = 0;
};

// What the kernels really do per token, recompute and frozen reference models included.
Flops hardware_flops(const Workload& workload, Recompute recompute) {
  const double head = workload.model.tied ? workload.parameters.embedding : workload.parameters.head;
  const double layers = std::max(0.0, matmul_parameters(workload) - head);
  const double attention = attention_flops_forward(workload);
  Flops flops{matmul_flops(workload), 3 * attention};
  if (recompute == Recompute::Full || recompute == Recompute::Offload) {
    flops.matmul += 2 * layers / static_cast<double>(workload.recompute_every);
  }
  if (recompute != Recompute::None) flops.attention += attention;
  flops.matmul += workload.reference_copies * 2 * matmul_parameters(workload);
  flops.attention += workload.reference_copies * attention;
  return flops;
}

double peak_flops(const Workload& workload, const Gpu& gpu) {
  if (workload.precision == Precision::Fp32 && gpu.fp32_tflops > 0) return gpu.fp32_tflops * 1e12;
  return gpu.bf16_tflops * 1e12;
}

// FLOP/s one card reaches in matmuls.
double matmul_rate(const Workload& workload, const Gpu& gpu) {
  double rate = peak_flops(workload, gpu) * gpu.efficiency;
  if (workload.precision == Precision::Fp8 && gpu.fp8_tflops > 0) {
    rate = gpu.fp8_tflops * 1e12 * gpu.efficiency * kFp8Share;
  }
  return workload.model.moe.experts > 0 ? rate * kMoeShare : rate;
}

// Bytes per second one card moves in a collective over the cards of its node.
double node_bandwidth(const Machine& machine) {
  const Gpu& gpu = *machine.gpu;
  const bool linked = machine.link == api::Interconnect::NvLink || machine.link == api::Interconnect::NvSwitch;
  if (gpu.nvlink_gb_per_s > 0 && (linked || gpu.pcie_gb_per_s <= 0)) return kNvLinkShare * gpu.nvlink_gb_per_s * kGiga;
  return kPcieShare * gpu.pcie_gb_per_s * kGiga;
}

// The same for a group of which `members` sit on each node and that spans nodes: its rings
// cross the node's adapters, which the groups of the node share.
double group_bandwidth(const Layout& layout, const Machine& machine, std::int64_t members) {
  const double network = kNetworkShare * machine.network_gbps.value_or(0) / 8 * kGiga;
  const double share = static_cast<double>(members) / static_cast<double>(layout.gpus_per_node);
  return std::min(node_bandwidth(machine), network * std::min(1.0, share));
}

// Everything about one rank that the terms below share.
struct Rank {
  double micro_batches = 1;  // per step
  double layers = 1;         // of its pipeline stage
  double parameters = 0;     // of its tensor and pipeline part
  double trained = 0;
  double activation = 0;          // bytes of one hidden-size tensor of a micro-batch on this rank
  std::int64_t dense_copies = 1;  // see layout.h
  double weight_bytes = 2;        // of an element in a gather
  double gradient_bytes = 4;      // of an element in a reduction
};

// Bytes per second of the groups over which replicas exchange gradients and gather weights.
double replica_bandwidth(const Layout& layout, const Machine& machine, const Rank& rank) {
  const std::int64_t members = std::max<std::int64_t>(1, layout.gpus_per_node / layout.tensor / rank.dense_copies);
  return layout.shards() <= members ? node_bandwidth(machine) : group_bandwidth(layout, machine, members);
}

double seconds(double bytes, double bandwidth) {
  if (bytes <= 0) return 0;
  return bandwidth > 0 ? bytes / bandwidth : std::numeric_limits<double>::infinity();
}

// What stays visible of communication that runs beside `compute`:
// max(a, b) x overlap + (a + b) x (1 - overlap), less the compute itself.
double exposed(double communication, double compute) {
  const double both = kOverlap * std::max(communication, compute) + (1 - kOverlap) * (communication + compute);
  return std::max(0.0, both - compute);
}

Rank rank_of(const Workload& workload, const Layout& layout) {
  Rank rank;
  const double parts = static_cast<double>(layout.tensor) * static_cast<double>(layout.pipeline);
  const StateBytes& states = workload.recipe.states[static_cast<std::size_t>(workload.precision)];
  const double element = states.compute > 0 ? states.compute : 2;
  const double spread = static_cast<double>(std::max<std::int64_t>(1, layout.expert));
  const ParameterCount& count = workload.parameters;
  const double held = count.total > 0 ? (count.total - count.experts + count.experts / spread) / count.total : 1;
  rank.micro_batches = static_cast<double>(accumulation_steps(workload, layout));
  rank.layers = static_cast<double>(workload.model.layers) / static_cast<double>(layout.pipeline);
  rank.parameters = count.total * held / parts;
  rank.dense_copies = dense_copies(workload, layout);
  rank.trained = workload.trained * (adapters_only(workload) ? 1 : held) / parts;
  rank.activation = element * static_cast<double>(workload.sequence) / static_cast<double>(layout.context) *
                    static_cast<double>(layout.micro_batch) * workload.sequences_per_sample *
                    static_cast<double>(workload.model.hidden);
  rank.weight_bytes = workload.method == Method::QLora ? kQuantisedBytes : element;
  rank.gradient_bytes = workload.recipe.reduce_bytes > 0 ? workload.recipe.reduce_bytes : element;
  return rank;
}

double tensor_seconds(const Layout& layout, const Machine& machine, const Rank& rank) {
  if (layout.tensor <= 1) return 0;
  const double t = static_cast<double>(layout.tensor);
  const double reductions = layout.recomputes_layers() ? 6 : 4;
  const double bytes = rank.micro_batches * rank.layers * reductions * 2 * (t - 1) / t * rank.activation;
  return seconds(bytes, node_bandwidth(machine));
}

double data_seconds(const Layout& layout, const Machine& machine, const Rank& rank, double compute) {
  const double n = static_cast<double>(layout.shards());
  if (n <= 1) return 0;
  const double share = (n - 1) / n;
  const double bandwidth = replica_bandwidth(layout, machine, rank);
  if (layout.sharding == Sharding::Zero3) {
    const double bytes =
        rank.micro_batches * share * (2 * rank.parameters * rank.weight_bytes + rank.trained * rank.gradient_bytes);
    return exposed(seconds(bytes, bandwidth), compute);
  }
  // Gradients travel once, behind the backward pass of the last micro-batch.
  const double window = compute * 2 / 3 / rank.micro_batches;
  return exposed(seconds(2 * share * rank.trained * rank.gradient_bytes, bandwidth), window);
}

double context_seconds(const Workload& workload, const Layout& layout, const Machine& machine, const Rank& rank,
                       double compute) {
  if (layout.context <= 1 || workload.model.hidden <= 0) return 0;
  const double c = static_cast<double>(layout.context);
  const double keys_and_values = 2 * static_cast<double>(workload.model.kv_heads * workload.model.head_dim) /
                                 static_cast<double>(workload.model.hidden);
  // Each rank passes its block on c - 1 times, forward once and backward twice.
  const double bytes = rank.micro_batches * rank.layers * 3 * (c - 1) * rank.activation * keys_and_values /
                       static_cast<double>(layout.tensor);
  const bool in_node = layout.context * layout.tensor <= layout.gpus_per_node;
  return exposed(seconds(bytes, in_node ? node_bandwidth(machine) : replica_bandwidth(layout, machine, rank)), compute);
}

double expert_seconds(const Workload& workload, const Layout& layout, const Machine& machine, const Rank& rank) {
  if (layout.expert <= 1) return 0;
  const double e = static_cast<double>(layout.expert);
  // To the experts and back, forward, backward and recomputed. A group that shares its batch adds up its outputs
  // instead.
  const double passes = layout.recomputes_layers() ? 3 : 2;
  const double copies = rank.dense_copies > 1 ? 1 : static_cast<double>(workload.model.moe.top_k);
  const double bytes = rank.micro_batches * rank.layers * passes * 2 * rank.activation * copies * (e - 1) / e;
  const bool in_node = layout.expert <= layout.gpus_per_node;
  return seconds(bytes, in_node ? node_bandwidth(machine) : group_bandwidth(layout, machine, layout.gpus_per_node));
}

double bubble_seconds(const Layout& layout, const Machine& machine, const Rank& rank, double busy) {
  if (layout.pipeline <= 1) return 0;
  const double hand_over = rank.micro_batches * 2 * rank.activation / static_cast<double>(layout.tensor);
  const double bandwidth =
      layout.nodes() > 1 ? group_bandwidth(layout, machine, layout.tensor) : node_bandwidth(machine);
  const double chunks = rank.micro_batches * static_cast<double>(layout.virtual_stages);
  return busy * static_cast<double>(layout.pipeline - 1) / chunks + seconds(hand_over, bandwidth);
}

double update_seconds(const Workload& workload, const Layout& layout, const Machine& machine, const Rank& rank) {
  const StateBytes& states = workload.recipe.states[static_cast<std::size_t>(workload.precision)];
  const double shards = layout.sharding == Sharding::None ? 1 : static_cast<double>(layout.shards());
  const double trained = rank.trained / shards;
  const double per_parameter = states.gradients + 2 * (states.weights + states.master) +
                               2 * (workload.optimizer.moments * states.moment + workload.optimizer.fixed_bytes);
  if (layout.offload == Offload::None) {
    return seconds(trained * per_parameter, kMemoryShare * machine.gpu->memory_gb_per_s * kGiga);
  }
  const double host_link = std::max(machine.gpu->pcie_gb_per_s, 1.0) * kNetworkShare * kGiga;
  double bytes = trained * (rank.gradient_bytes + rank.weight_bytes);
  if (layout.offload == Offload::Full) bytes += rank.micro_batches * 2 * rank.parameters / shards * rank.weight_bytes;
  return seconds(bytes, host_link) + trained * per_parameter / (kHostGBPerSecond * kGiga);
}

}  // namespace

double model_flops_per_token(const Workload& workload) {
  return matmul_flops(workload) + 3 * attention_flops_forward(workload);
}

Result<StepTime> step_time(const Workload& workload, const Layout& layout, const Machine& machine) {
  if (machine.gpu == nullptr || machine.gpu->bf16_tflops <= 0) {
    return Error::make(Error::Code::NotFound, "the speed of its GPU is not in the table");
  }
  if (layout.nodes() > 1 && machine.network_gbps.value_or(0) <= 0) {
    return Error::make(Error::Code::NotFound,
                       "the network between its nodes is not known; set spec.network.gbpsPerNode of the pool");
  }
  const Gpu& gpu = *machine.gpu;
  const Rank rank = rank_of(workload, layout);
  const double gpus = static_cast<double>(std::max<std::int64_t>(1, layout.gpus));
  const Flops flops = hardware_flops(workload, layout.recompute);
  const double rate = matmul_rate(workload, gpu);

  StepTime time;
  time.tokens = rank.micro_batches * static_cast<double>(layout.micro_batch) * static_cast<double>(layout.data) *
                static_cast<double>(workload.sequence);
  const double work = time.tokens * workload.sequences_per_sample / gpus;
  const double routed = routed_share(workload);
  const double copies = static_cast<double>(rank.dense_copies);
  const double matmul = flops.matmul * (routed + (1 - routed) * copies);
  time.compute = work * (matmul + flops.attention / kAttentionShare * copies) / rate;
  time.tensor = tensor_seconds(layout, machine, rank);
  time.context = context_seconds(workload, layout, machine, rank, time.compute);
  time.expert = expert_seconds(workload, layout, machine, rank);
  time.data = data_seconds(layout, machine, rank, time.compute);
  time.bubble = bubble_seconds(layout, machine, rank, time.compute + time.tensor + time.expert);
  time.update = update_seconds(workload, layout, machine, rank);
  time.total = time.compute + time.tensor + time.context + time.expert + time.data + time.bubble + time.update;
  if (time.total > 0) {
    const double done = time.tokens * workload.sequences_per_sample * model_flops_per_token(workload);
    time.mfu = done / (time.total * gpus * peak_flops(workload, gpu));
  }
  return time;
}

std::string step_time_text(const StepTime& time) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, double value) {
    if (value >= 0.01 * time.total && value > 0) parts.push_back(std::string(name) + " " + fixed(value, 2));
  };
  add("compute", time.compute);
  add("tensor parallel", time.tensor);
  add("context parallel", time.context);
  add("expert exchange", time.expert);
  add("gradients and gathers", time.data);
  add("pipeline bubble", time.bubble);
  add("update", time.update);
  return fixed(time.total, 2) + " s a step: " + join(parts, ", ") + "; " + fixed(100 * time.mfu, 0) + " % MFU";
}

}  // namespace loadline::estimator
