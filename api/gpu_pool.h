// GPUPool (cluster-scoped, short name gpool): a set of nodes with the same GPU, link and
// capacity type, and what it costs. Written by the admin; where no object exists a pool is
// discovered from node labels. Order of trust: live nodes > GPUPool > discovery labels.
// Unknown is absent, never 0. Prices are the admin's or a feed's: none is built in.
// See api/meta.h for how fields are listed and what absence means.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/enums.h"
#include "api/meta.h"

namespace loadline::api {

struct GpuSpec {
  std::optional<std::string> product;  ///< as nvidia.com/gpu.product says it: NVIDIA-A100-SXM4-80GB
  std::optional<std::int64_t> memoryMiBPerGPU;
  std::optional<std::int64_t> perNode;
  std::optional<std::string> resourceName;  ///< default nvidia.com/gpu
  std::optional<Interconnect> interconnect;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("product", self.product);
    visit("memoryMiBPerGPU", self.memoryMiBPerGPU);
    visit("perNode", self.perNode);
    visit("resourceName", self.resourceName);
    visit("interconnect", self.interconnect);
  }
  bool operator==(const GpuSpec&) const = default;
};

struct NetworkSpec {
  std::optional<NetworkType> type;
  std::optional<double> gbpsPerNode;
  std::map<std::string, std::int64_t> extraResources;  ///< asked for by each pod, e.g. vpc.amazonaws.com/efa: 32

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("type", self.type);
    visit("gbpsPerNode", self.gbpsPerNode);
    visit("extraResources", self.extraResources);
  }
  bool operator==(const NetworkSpec&) const = default;
};

/// Exactly one of perGPUHour and perNodeHour, a decimal string; or owned: true for hardware
/// that is paid for already. A price of 0 without owned is refused.
struct PriceSpec {
  std::optional<std::string> perGPUHour, perNodeHour;
  std::optional<std::string> currency;  ///< ISO 4217; default USD
  std::optional<std::string> asOf;      ///< date, 2026-11-28
  std::optional<std::string> source;
  std::optional<bool> owned;
  std::optional<std::int64_t> billingSeconds, minimumSeconds;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("perGPUHour", self.perGPUHour);
    visit("perNodeHour", self.perNodeHour);
    visit("currency", self.currency);
    visit("asOf", self.asOf);
    visit("source", self.source);
    visit("owned", self.owned);
    visit("billingSeconds", self.billingSeconds);
    visit("minimumSeconds", self.minimumSeconds);
  }
  bool operator==(const PriceSpec&) const = default;
};

struct StorageSpec {
  std::vector<std::string> classes;  ///< StorageClass names, preferred first
  std::optional<double> writeMiBps;  ///< what one gang can write
  std::optional<std::string> pricePerGiBMonth, egressPricePerGiB;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("classes", self.classes);
    visit("writeMiBps", self.writeMiBps);
    visit("pricePerGiBMonth", self.pricePerGiBMonth);
    visit("egressPricePerGiB", self.egressPricePerGiB);
  }
  bool operator==(const StorageSpec&) const = default;
};

struct ScalingSpec {
  std::optional<std::int64_t> minNodes, maxNodes, bootSeconds;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("minNodes", self.minNodes);
    visit("maxNodes", self.maxNodes);
    visit("bootSeconds", self.bootSeconds);
  }
  bool operator==(const ScalingSpec&) const = default;
};

/// core/v1 Toleration.
struct Toleration {
  std::optional<std::string> key, op, value, effect;
  std::optional<std::int64_t> tolerationSeconds;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("key", self.key);
    visit("operator", self.op);
    visit("value", self.value);
    visit("effect", self.effect);
    visit("tolerationSeconds", self.tolerationSeconds);
  }
  bool operator==(const Toleration&) const = default;
};

struct GPUPoolSpec {
  static constexpr std::array<std::string_view, 1> kRequired{"nodeSelector"};

  std::map<std::string, std::string> nodeSelector;  ///< matchLabels of the pool's nodes
  std::optional<GpuSpec> gpu;
  std::optional<NetworkSpec> network;
  std::optional<CapacityType> capacityType;
  std::optional<std::int64_t> noticeSeconds;  ///< warning before a reclaim
  std::optional<PriceSpec> price;
  std::optional<StorageSpec> storage;
  std::optional<double> interruptionsPerNodeHour;  ///< a prior
  std::optional<ScalingSpec> scaling;
  std::vector<Toleration> tolerations;
  std::vector<std::string> topologyKeys;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("nodeSelector", self.nodeSelector);
    visit("gpu", self.gpu);
    visit("network", self.network);
    visit("capacityType", self.capacityType);
    visit("noticeSeconds", self.noticeSeconds);
    visit("price", self.price);
    visit("storage", self.storage);
    visit("interruptionsPerNodeHour", self.interruptionsPerNodeHour);
    visit("scaling", self.scaling);
    visit("tolerations", self.tolerations);
    visit("topologyKeys", self.topologyKeys);
  }
  bool operator==(const GPUPoolSpec&) const = default;
};

struct PoolZoneStatus {
  std::string zone;
  std::int64_t nodes = 0, gpusTotal = 0, gpusFree = 0, largestFreeBlock = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("zone", self.zone);
    visit("nodes", self.nodes);
    visit("gpusTotal", self.gpusTotal);
    visit("gpusFree", self.gpusFree);
    visit("largestFreeBlock", self.largestFreeBlock);
  }
  bool operator==(const PoolZoneStatus&) const = default;
};

struct PoolNodeCounts {
  std::int64_t ready = 0, notReady = 0, cordoned = 0, ending = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("ready", self.ready);
    visit("notReady", self.notReady);
    visit("cordoned", self.cordoned);
    visit("ending", self.ending);
  }
  bool operator==(const PoolNodeCounts&) const = default;
};

struct GPUPoolStatus {
  std::optional<std::int64_t> observedGeneration;
  std::optional<PoolNodeCounts> nodes;
  std::optional<std::int64_t> gpusTotal, gpusFree;
  std::vector<PoolZoneStatus> zones;
  std::optional<double> interruptionsPerNodeHour;  ///< learned
  std::vector<std::string> disagreements;          ///< where nodes, this object and labels differ
  std::optional<std::int64_t> priceAgeDays;
  std::vector<Condition> conditions;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("observedGeneration", self.observedGeneration);
    visit("nodes", self.nodes);
    visit("gpusTotal", self.gpusTotal);
    visit("gpusFree", self.gpusFree);
    visit("zones", self.zones);
    visit("interruptionsPerNodeHour", self.interruptionsPerNodeHour);
    visit("disagreements", self.disagreements);
    visit("priceAgeDays", self.priceAgeDays);
    visit("conditions", self.conditions);
  }
  bool operator==(const GPUPoolStatus&) const = default;
};

struct GPUPool {
  static constexpr const char* kKind = "GPUPool";
  static constexpr const char* kPlural = "gpupools";
  static constexpr std::array<std::string_view, 1> kRequired{"spec"};

  ObjectMeta metadata;
  GPUPoolSpec spec;
  GPUPoolStatus status;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("metadata", self.metadata);
    visit("spec", self.spec);
    visit("status", self.status);
  }
  bool operator==(const GPUPool&) const = default;
};

}  // namespace loadline::api
