// The plan as files for the trainer: our own plan.json, and the same layout in DeepSpeed's and Accelerate's words.

#include <nlohmann/json.hpp>

#include "operator/names.h"
#include "operator/render.h"

namespace loadline::controller {
namespace {

using nlohmann::json;

api::Precision precision(const Rendering& r) {
  return r.job.spec.training.precision.value_or(api::Precision::Bf16Mixed);
}

int zero_stage(const api::LayoutStatus& layout) {
  switch (layout.sharding.value_or(api::Sharding::None)) {
    case api::Sharding::None: return 0;
    case api::Sharding::Zero1: return 1;
    case api::Sharding::Zero2: return 2;
    case api::Sharding::Zero3: return 3;
  }
  return 0;
}

bool bf16(api::Precision p) { return p == api::Precision::Bf16Mixed || p == api::Precision::Bf16; }

const char* mixed_precision(api::Precision p) {
  if (bf16(p)) return "bf16";
  if (p == api::Precision::Fp16Mixed) return "fp16";
  return p == api::Precision::Fp8 ? "fp8" : "no";
}

void put_if(json& object, const char* key, const auto& value) {
  if (value) object[key] = *value;
}

}  // namespace

json plan_file(const Rendering& r) {
  const api::PlacementStatus& placement = *r.status.placement;
  const api::LayoutStatus& layout = *placement.layout;
  json plan = {{"version", 1},
               {"job", r.job.metadata.name},
               {"namespace", r.job.metadata.namespaceName},
               {"attempt", r.attempt.number},
               {"pool", r.attempt.pool},
               {"layout",
                {{"gpus", layout.gpus},
                 {"nodes", layout.nodes},
                 {"gpusPerNode", layout.gpusPerNode},
                 {"tensor", layout.tensor},
                 {"pipeline", layout.pipeline},
                 {"virtualStages", layout.virtualStages},
                 {"context", layout.context},
                 {"expert", layout.expert},
                 {"data", layout.data},
                 {"replicate", layout.replicate},
                 {"sharding", api::name_of(layout.sharding.value_or(api::Sharding::None))},
                 {"offload", api::name_of(layout.offload.value_or(api::Offload::None))},
                 {"activationCheckpointing",
                  api::name_of(layout.activationCheckpointing.value_or(api::ActivationCheckpointing::None))},
                 {"microBatchSize", layout.microBatchSize},
                 {"gradientAccumulation", layout.gradientAccumulation}}},
               {"precision", api::name_of(precision(r))}};
  put_if(plan, "gpu", placement.gpu);
  put_if(plan, "zone", placement.zone);
  put_if(plan["layout"], "text", layout.text);
  put_if(plan, "sequenceLength", r.job.spec.training.sequenceLength);
  put_if(plan, "globalBatchSize", r.job.spec.training.globalBatchSize);
  if (r.status.checkpoint && r.status.checkpoint->claim) {
    const auto& spec = r.job.spec.checkpoint;
    json checkpoint = {{"directory", checkpoint_directory(r.job)},
                       {"completeMarker", checkpoint_marker(r.job)},
                       {"keepLast", spec ? spec->keepLast.value_or(2) : 2}};
    put_if(checkpoint, "intervalSeconds", r.status.checkpoint->intervalSeconds);
    plan["checkpoint"] = std::move(checkpoint);
  }
  if (const auto kept = user_environment(r); !kept.empty()) plan["environmentKeptFromTemplate"] = kept;
  return plan;
}

json deepspeed_file(const Rendering& r) {
  const api::LayoutStatus& layout = *r.status.placement->layout;
  const int stage = zero_stage(layout);
  const api::Offload offload = layout.offload.value_or(api::Offload::None);
  json zero = {{"stage", stage}, {"overlap_comm", true}, {"contiguous_gradients", true}};
  if (offload != api::Offload::None) zero["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
  if (offload == api::Offload::Full && stage == 3) zero["offload_param"] = {{"device", "cpu"}, {"pin_memory", true}};
  return {{"train_micro_batch_size_per_gpu", layout.microBatchSize},
          {"gradient_accumulation_steps", layout.gradientAccumulation},
          {"bf16", {{"enabled", bf16(precision(r))}}},
          {"fp16", {{"enabled", precision(r) == api::Precision::Fp16Mixed}}},
          {"zero_optimization", std::move(zero)}};
}

/// Accelerate's name for a ZeRO stage, within groups of ranks or over all of them.
std::string fsdp_strategy(const api::LayoutStatus& layout, int stage) {
  if (layout.replicate > 1) return stage == 3 ? "HYBRID_SHARD" : "HYBRID_SHARD_ZERO2";
  return stage == 3 ? "FULL_SHARD" : "SHARD_GRAD_OP";
}

std::string accelerate_file(const Rendering& r) {
  const api::LayoutStatus& layout = *r.status.placement->layout;
  const int stage = zero_stage(layout);
  std::string out = "compute_environment: LOCAL_MACHINE\n";
  out += "distributed_type: " + std::string(layout.gpus == 1 ? "'NO'" : stage >= 2 ? "FSDP" : "MULTI_GPU") + "\n";
  out += "num_machines: " + std::to_string(layout.nodes) + "\n";
  out += "num_processes: " + std::to_string(layout.gpus) + "\n";
  out += "mixed_precision: '" + std::string(mixed_precision(precision(r))) + "'\n";
  if (layout.gpus > 1 && stage >= 2) {
    out += "fsdp_config:\n";
    out += "  fsdp_version: 1\n";
    out += "  fsdp_sharding_strategy: " + fsdp_strategy(layout, stage) + "\n";
    out += "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
    out += "  fsdp_state_dict_type: SHARDED_STATE_DICT\n";
    const bool offload = layout.offload.value_or(api::Offload::None) != api::Offload::None;
    out += "  fsdp_offload_params: " + std::string(offload ? "true" : "false") + "\n";
    const bool recompute = layout.activationCheckpointing.value_or(api::ActivationCheckpointing::None) !=
                           api::ActivationCheckpointing::None;
    out += "  fsdp_activation_checkpointing: " + std::string(recompute ? "true" : "false") + "\n";
  }
  return out;
}

json render_plan_config(const Rendering& r) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata",
           {{"name", plan_config_name(r.job.metadata.name, r.attempt.number)},
            {"namespace", r.job.metadata.namespaceName},
            {"labels", attempt_labels(r)},
            {"ownerReferences", json::array({owner_reference(r.job)})}}},
          {"data",
           {{"plan.json", plan_file(r).dump(2) + "\n"},
            {"deepspeed.json", deepspeed_file(r).dump(2) + "\n"},
            {"accelerate.yaml", accelerate_file(r)}}}};
}

}  // namespace loadline::controller
