// Why a pool was or was not taken: the closed set of codes in status.placement.options[].reason.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace loadline::placement {

enum class Reason {
  Chosen,
  Fits,          ///< could run now, ranked lower
  NoFreeGPUs,    ///< fits, but not enough is free at the moment
  NodesBooting,  ///< nodes are Ready without their GPUs yet
  NodesEnding,   ///< its nodes are cordoned, not ready or about to go
  TaintNotTolerated,
  UnknownMemory,
  NoLayout,  ///< no way to cut the job over that many GPUs
  InsufficientMemory,
  InsufficientHostMemory,
  NotEnoughGPUs,         ///< never enough, not even with all nodes free and the pool scaled out
  SharedGPUs,            ///< time-sliced, MPS or MIG
  PoolExcluded,          ///< by spec.placement.pools
  GpuModelExcluded,      ///< by spec.placement.gpuModels
  CapacityTypeExcluded,  ///< by spec.placement.capacityType
  InterconnectExcluded,  ///< by spec.placement.interconnect
  PolicyDenied,
  SpotNotAllowed,         ///< by the policy's spot rules
  Escalated,              ///< moved off this capacity type after too many interruptions
  NoExpectedProgress,     ///< interrupted faster than it gets on
  LimitExceeded,          ///< a limit per job, or the job alone is above one per namespace
  LimitReached,           ///< other jobs of the namespace use a limit up
  UnknownCost,            ///< a limit on cost cannot be held to: price, its currency or the speed
  ZonePinned,             ///< the checkpoint volume is in another zone
  VolumeNotShared,        ///< several nodes cannot write to the checkpoint volume
  StorageClassNotListed,  ///< the pool does not list the checkpoint volume's StorageClass
};

inline constexpr std::array<std::pair<Reason, std::string_view>, 26> kReasonNames{{
    {Reason::Chosen, "Chosen"},
    {Reason::Fits, "Fits"},
    {Reason::NoFreeGPUs, "NoFreeGPUs"},
    {Reason::NodesBooting, "NodesBooting"},
    {Reason::NodesEnding, "NodesEnding"},
    {Reason::TaintNotTolerated, "TaintNotTolerated"},
    {Reason::UnknownMemory, "UnknownMemory"},
    {Reason::NoLayout, "NoLayout"},
    {Reason::InsufficientMemory, "InsufficientMemory"},
    {Reason::InsufficientHostMemory, "InsufficientHostMemory"},
    {Reason::NotEnoughGPUs, "NotEnoughGPUs"},
    {Reason::SharedGPUs, "SharedGPUs"},
    {Reason::PoolExcluded, "PoolExcluded"},
    {Reason::GpuModelExcluded, "GpuModelExcluded"},
    {Reason::CapacityTypeExcluded, "CapacityTypeExcluded"},
    {Reason::InterconnectExcluded, "InterconnectExcluded"},
    {Reason::PolicyDenied, "PolicyDenied"},
    {Reason::SpotNotAllowed, "SpotNotAllowed"},
    {Reason::Escalated, "Escalated"},
    {Reason::NoExpectedProgress, "NoExpectedProgress"},
    {Reason::LimitExceeded, "LimitExceeded"},
    {Reason::LimitReached, "LimitReached"},
    {Reason::UnknownCost, "UnknownCost"},
    {Reason::ZonePinned, "ZonePinned"},
    {Reason::VolumeNotShared, "VolumeNotShared"},
    {Reason::StorageClassNotListed, "StorageClassNotListed"},
}};

[[nodiscard]] constexpr std::string_view reason_name(Reason reason) {
  for (const auto& [value, text] : kReasonNames) {
    if (value == reason) return text;
  }
  return "Unknown";
}

/// Whether the cluster can change so that it no longer holds, with job and policy as they
/// are: then the job waits, it is not refused.
[[nodiscard]] constexpr bool may_pass(Reason reason) {
  switch (reason) {
    case Reason::NoFreeGPUs:
    case Reason::NodesBooting:
    case Reason::NodesEnding:
    case Reason::TaintNotTolerated:
    case Reason::UnknownMemory:
    case Reason::Escalated:
    case Reason::NoExpectedProgress:
    case Reason::LimitReached:
    case Reason::UnknownCost:
    case Reason::ZonePinned: return true;
    default: return false;
  }
}

}  // namespace loadline::placement
