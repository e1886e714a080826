// The closed sets of words that the three kinds use, with their spelling in YAML.
// One table per set serves parsing, printing and the check against the CRD schema.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace loadline::api {

/// Specialised per enum: `static constexpr std::array<std::pair<E, std::string_view>, N> table`.
template <class E>
struct EnumNames;

/// The YAML spelling of a value.
template <class E>
[[nodiscard]] constexpr std::string_view name_of(E value) {
  for (const auto& [candidate, text] : EnumNames<E>::table) {
    if (candidate == value) return text;
  }
  return "unknown";
}

/// The value spelled `text`; nothing when no value is spelled so. Case matters.
template <class E>
[[nodiscard]] constexpr std::optional<E> value_named(std::string_view text) {
  for (const auto& [candidate, name] : EnumNames<E>::table) {
    if (name == text) return candidate;
  }
  return std::nullopt;
}

#define LOADLINE_ENUM_NAMES(Enum, Count, ...)                                                   \
  template <>                                                                                   \
  struct EnumNames<Enum> {                                                                      \
    static constexpr std::array<std::pair<Enum, std::string_view>, Count> table{{__VA_ARGS__}}; \
  }

enum class Framework { Generic, HuggingFace, DeepSpeed, Megatron, TorchTitan, TorchTune, LitGpt };
LOADLINE_ENUM_NAMES(Framework, 7, {Framework::Generic, "generic"}, {Framework::HuggingFace, "huggingface"},
                    {Framework::DeepSpeed, "deepspeed"}, {Framework::Megatron, "megatron"},
                    {Framework::TorchTitan, "torchtitan"}, {Framework::TorchTune, "torchtune"},
                    {Framework::LitGpt, "litgpt"});

enum class Method { Full, Lora, QLora, Freeze };
LOADLINE_ENUM_NAMES(Method, 4, {Method::Full, "full"}, {Method::Lora, "lora"}, {Method::QLora, "qlora"},
                    {Method::Freeze, "freeze"});

enum class Objective { Pretrain, Sft, Dpo, Ppo, Grpo };
LOADLINE_ENUM_NAMES(Objective, 5, {Objective::Pretrain, "pretrain"}, {Objective::Sft, "sft"}, {Objective::Dpo, "dpo"},
                    {Objective::Ppo, "ppo"}, {Objective::Grpo, "grpo"});

enum class Precision { Fp32, Fp16Mixed, Bf16Mixed, Bf16, Fp8 };
LOADLINE_ENUM_NAMES(Precision, 5, {Precision::Fp32, "fp32"}, {Precision::Fp16Mixed, "fp16-mixed"},
                    {Precision::Bf16Mixed, "bf16-mixed"}, {Precision::Bf16, "bf16"}, {Precision::Fp8, "fp8"});

enum class Optimizer {
  AdamW,
  AdamWFused,
  AdamW8bit,
  AdamW4bit,
  PagedAdamW,
  PagedAdamW8bit,
  Adafactor,
  Lion,
  Sgd,
  SgdMomentum,
  Muon
};
LOADLINE_ENUM_NAMES(Optimizer, 11, {Optimizer::AdamW, "adamw"}, {Optimizer::AdamWFused, "adamw-fused"},
                    {Optimizer::AdamW8bit, "adamw-8bit"}, {Optimizer::AdamW4bit, "adamw-4bit"},
                    {Optimizer::PagedAdamW, "paged-adamw"}, {Optimizer::PagedAdamW8bit, "paged-adamw-8bit"},
                    {Optimizer::Adafactor, "adafactor"}, {Optimizer::Lion, "lion"}, {Optimizer::Sgd, "sgd"},
                    {Optimizer::SgdMomentum, "sgd-momentum"}, {Optimizer::Muon, "muon"});

enum class ActivationCheckpointing { None, Selective, Full, Offload };
LOADLINE_ENUM_NAMES(ActivationCheckpointing, 4, {ActivationCheckpointing::None, "none"},
                    {ActivationCheckpointing::Selective, "selective"}, {ActivationCheckpointing::Full, "full"},
                    {ActivationCheckpointing::Offload, "offload"});

enum class Attention { Flash, Sdpa, Eager };
LOADLINE_ENUM_NAMES(Attention, 3, {Attention::Flash, "flash"}, {Attention::Sdpa, "sdpa"}, {Attention::Eager, "eager"});

enum class Loss { Standard, Kernel, Chunked, Fused };
LOADLINE_ENUM_NAMES(Loss, 4, {Loss::Standard, "standard"}, {Loss::Kernel, "kernel"}, {Loss::Chunked, "chunked"},
                    {Loss::Fused, "fused"});

/// How the frozen weights of method qlora are stored.
enum class Quantization { Nf4, Nf4Double, Gptq };
LOADLINE_ENUM_NAMES(Quantization, 3, {Quantization::Nf4, "nf4"}, {Quantization::Nf4Double, "nf4-double"},
                    {Quantization::Gptq, "gptq"});

enum class Sharding { None, Zero1, Zero2, Zero3 };
LOADLINE_ENUM_NAMES(Sharding, 4, {Sharding::None, "none"}, {Sharding::Zero1, "zero1"}, {Sharding::Zero2, "zero2"},
                    {Sharding::Zero3, "zero3"});

enum class Offload { None, Optimizer, Full };
LOADLINE_ENUM_NAMES(Offload, 3, {Offload::None, "none"}, {Offload::Optimizer, "optimizer"}, {Offload::Full, "full"});

/// What a job asks for. A pool has a CapacityType.
enum class CapacityWish { Any, Spot, OnDemand, Reserved };
LOADLINE_ENUM_NAMES(CapacityWish, 4, {CapacityWish::Any, "any"}, {CapacityWish::Spot, "spot"},
                    {CapacityWish::OnDemand, "on-demand"}, {CapacityWish::Reserved, "reserved"});

enum class CapacityType { Spot, OnDemand, Reserved };
LOADLINE_ENUM_NAMES(CapacityType, 3, {CapacityType::Spot, "spot"}, {CapacityType::OnDemand, "on-demand"},
                    {CapacityType::Reserved, "reserved"});

enum class InterconnectWish { Any, NvLink };
LOADLINE_ENUM_NAMES(InterconnectWish, 2, {InterconnectWish::Any, "any"}, {InterconnectWish::NvLink, "nvlink"});

enum class Interconnect { Unknown, NvLink, NvSwitch, Pcie };
LOADLINE_ENUM_NAMES(Interconnect, 4, {Interconnect::Unknown, "unknown"}, {Interconnect::NvLink, "nvlink"},
                    {Interconnect::NvSwitch, "nvswitch"}, {Interconnect::Pcie, "pcie"});

/// Ordered from loosest to strictest: a policy's floor is the least value allowed.
enum class Enforcement { Off, Warn, Enforce };
LOADLINE_ENUM_NAMES(Enforcement, 3, {Enforcement::Off, "Off"}, {Enforcement::Warn, "Warn"},
                    {Enforcement::Enforce, "Enforce"});

enum class Launcher { Torchrun, DeepSpeed, Mpi, Jax, None };
LOADLINE_ENUM_NAMES(Launcher, 5, {Launcher::Torchrun, "torchrun"}, {Launcher::DeepSpeed, "deepspeed"},
                    {Launcher::Mpi, "mpi"}, {Launcher::Jax, "jax"}, {Launcher::None, "none"});

enum class RetainPolicy { Delete, Retain, RetainOnFailure };
LOADLINE_ENUM_NAMES(RetainPolicy, 3, {RetainPolicy::Delete, "Delete"}, {RetainPolicy::Retain, "Retain"},
                    {RetainPolicy::RetainOnFailure, "RetainOnFailure"});

enum class PlacementObjective { Cost, Time, Balanced };
LOADLINE_ENUM_NAMES(PlacementObjective, 3, {PlacementObjective::Cost, "Cost"}, {PlacementObjective::Time, "Time"},
                    {PlacementObjective::Balanced, "Balanced"});

enum class PolicyMode { Enforce, Warn, DryRun };
LOADLINE_ENUM_NAMES(PolicyMode, 3, {PolicyMode::Enforce, "Enforce"}, {PolicyMode::Warn, "Warn"},
                    {PolicyMode::DryRun, "DryRun"});

enum class NetworkType { Unknown, Ethernet, Efa, InfiniBand, RoCE, GpuDirectTcpx };
LOADLINE_ENUM_NAMES(NetworkType, 6, {NetworkType::Unknown, "unknown"}, {NetworkType::Ethernet, "ethernet"},
                    {NetworkType::Efa, "efa"}, {NetworkType::InfiniBand, "infiniband"}, {NetworkType::RoCE, "roce"},
                    {NetworkType::GpuDirectTcpx, "gpudirect-tcpx"});

enum class ConditionStatus { Unknown, False, True };
LOADLINE_ENUM_NAMES(ConditionStatus, 3, {ConditionStatus::Unknown, "Unknown"}, {ConditionStatus::False, "False"},
                    {ConditionStatus::True, "True"});

/// Why an attempt ended; the classification table of the operator.
enum class AttemptCause {
  Succeeded,
  Preempted,
  Infrastructure,
  UserFailure,
  OutOfMemory,
  PolicyEviction,
  Suspended,
  Deadline
};
LOADLINE_ENUM_NAMES(AttemptCause, 8, {AttemptCause::Succeeded, "Succeeded"}, {AttemptCause::Preempted, "Preempted"},
                    {AttemptCause::Infrastructure, "Infrastructure"}, {AttemptCause::UserFailure, "UserFailure"},
                    {AttemptCause::OutOfMemory, "OutOfMemory"}, {AttemptCause::PolicyEviction, "PolicyEviction"},
                    {AttemptCause::Suspended, "Suspended"}, {AttemptCause::Deadline, "Deadline"});

enum class Verdict { Chosen, Fits, Refused };
LOADLINE_ENUM_NAMES(Verdict, 3, {Verdict::Chosen, "Chosen"}, {Verdict::Fits, "Fits"}, {Verdict::Refused, "Refused"});

enum class ConfidenceLevel { High, Approximate, LowerBound };
LOADLINE_ENUM_NAMES(ConfidenceLevel, 3, {ConfidenceLevel::High, "high"}, {ConfidenceLevel::Approximate, "approximate"},
                    {ConfidenceLevel::LowerBound, "lower-bound"});

#undef LOADLINE_ENUM_NAMES

}  // namespace loadline::api
