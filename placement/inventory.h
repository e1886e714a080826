// What there is to run on: pools of equal nodes, their GPUs, links, prices and free capacity.
// A pool is a GPUPool object, or is discovered from the labels a cloud puts on its nodes.
// Order of trust: live nodes, then the GPUPool, then discovery labels; where sources differ
// the cautious one is used and the difference is said. Unknown is absent, never 0.
//
// Thread-safety: an Inventory is immutable once made; pools are shared, never changed.
// Errors: none; what cannot be used carries its reason in words.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/gpu_pool.h"
#include "base/text.h"
#include "estimator/step_time.h"
#include "placement/facts.h"

namespace loadline::placement {

enum class NodeState {
  Usable,
  Arriving,  ///< Ready, but its GPUs are not allocatable yet
  NotReady,
  Cordoned,
  Ending,       ///< deletion, an end-of-life taint, label or condition
  Partitioned,  ///< time-sliced, MPS or MIG: whole GPUs cannot be had
};

struct PoolNode {
  std::string name;
  std::string zone;  ///< empty when the node has no zone label
  NodeState state = NodeState::Usable;
  std::string why;            ///< when not usable, in words: "cordoned", "taint team=b:NoSchedule"
  std::int64_t gpus = 0;      ///< allocatable
  std::int64_t free = 0;      ///< allocatable less requests of pods that are not terminal; 0 unless usable
  Resources allocatable;      ///< of everything, "pods" included
  Resources free_resources;   ///< of the same, less the requests of pods that are not terminal
  std::vector<Taint> taints;  ///< NoSchedule and NoExecute only
  std::map<std::string, std::string> labels;
};

struct Price {
  double per_gpu_hour = 0;  ///< in `currency`
  std::string currency = "USD";
  std::optional<std::string> as_of;      ///< date as given
  std::optional<std::int64_t> age_days;  ///< absent when as_of is
  bool owned = false;                    ///< paid for already: 0 is a price only then
  [[nodiscard]] bool stale() const { return age_days.value_or(0) > kStaleAfterDays; }
  static constexpr std::int64_t kStaleAfterDays = 30;
};

struct Pool {
  std::string name;
  bool declared = false;                   ///< from a GPUPool object; otherwise discovered
  std::string product;                     ///< as the node or the object says it; empty unknown
  const estimator::Gpu* gpu = nullptr;     ///< row of the table; null unknown
  std::optional<std::int64_t> memory_mib;  ///< total per GPU, the least of the sources
  std::optional<std::int64_t> usable_mib;  ///< less the driver's share: what a framework can have
  std::string memory_source;               ///< "nvidia.com/gpu.memory 81920 MiB less 720 for the driver"
  std::int64_t per_node = 0;               ///< GPUs on a node; 0 unknown
  std::string resource = "nvidia.com/gpu";
  api::Interconnect interconnect = api::Interconnect::Unknown;
  std::string interconnect_source;                      ///< "product has SXM4", "GPUPool", ...
  std::optional<double> network_gbps;                   ///< of one node
  std::map<std::string, std::int64_t> extra_resources;  ///< on a node, for gangs of several: vpc.amazonaws.com/efa
  std::optional<api::CapacityType> capacity_type;       ///< absent: no marker; treated as on-demand and said so
  std::int64_t notice_seconds = 0;                      ///< warning before a reclaim; 0 unknown
  std::optional<Price> price;                           ///< absent: unknown
  std::string price_problem;                            ///< a price that was refused, in words
  std::vector<std::string> storage_classes;             ///< preferred first
  std::optional<double> write_mib_per_s;
  std::optional<double> reclaims_per_node_hour;  ///< learned, else the object's prior, else absent
  std::int64_t min_nodes = 0;
  std::optional<std::int64_t> max_nodes;  ///< absent: only what is there now
  std::int64_t boot_seconds = 0;
  std::map<std::string, std::string> node_selector;  ///< what a pod asks for to land here
  std::vector<api::Toleration> tolerations;          ///< the object's, and those its usual taints need
  std::vector<std::string> topology_keys;
  std::vector<std::string> disagreements;  ///< between sources, in words with both figures
  std::vector<PoolNode> nodes;

  [[nodiscard]] estimator::Machine machine() const { return {gpu, interconnect, network_gbps}; }
  /// Of extra_resources, what each pod of a gang asks for: its share of a node, rounded up; nothing for a gang of one,
  /// which has nobody to talk to.
  [[nodiscard]] std::map<std::string, std::int64_t> extra_for(std::int64_t pods, std::int64_t gpus_per_pod) const;
  /// All that such a pod asks of a node besides GPUs, its place among the pods included, in thousandths. What the
  /// template says of a device itself stands.
  [[nodiscard]] Resources asked_by_pod(Resources of_template, std::int64_t pods, std::int64_t gpus_per_pod) const;
  [[nodiscard]] std::int64_t gpus_total() const;
  [[nodiscard]] std::int64_t gpus_free() const;
  /// "NVSwitch", "NVLink", "PCIe", "link unknown".
  [[nodiscard]] std::string link_text() const;
};

struct Inventory {
  std::vector<std::shared_ptr<const Pool>> pools;  ///< by name; a node is in one pool only
  /// GPUs of our pods that sit on a node already, by "jobUID/attempt". Those that have ended do not count: what a gang
  /// was promised stays its own until its attempt is over.
  std::map<std::string, std::int64_t> bound;
  std::vector<std::string> notes;  ///< nodes with GPUs that no pool could take, and why

  [[nodiscard]] const Pool* find(const std::string& name) const;
};

/// `now` only dates prices. A node selected by several GPUPools belongs to the one with more
/// selector keys, then to the first by name, and the overlap is a disagreement.
[[nodiscard]] Inventory inventory_of(const std::vector<api::GPUPool>& objects, const std::vector<NodeFacts>& nodes,
                                     const std::vector<PodFacts>& pods, TimePoint now);

/// The status of a GPUPool object as the inventory sees it; without conditions.
[[nodiscard]] api::GPUPoolStatus pool_status(const Pool& pool);

/// What is wrong with a GPUPool's spec beyond its schema (selector, price, ...), for admission.
[[nodiscard]] std::vector<FieldError> check_pool(const api::GPUPool& pool);

/// Whether a list of tolerations lets a pod onto a node with this taint, as kube-scheduler
/// decides (PreferNoSchedule always does).
[[nodiscard]] bool tolerates(const std::vector<api::Toleration>& tolerations, const Taint& taint);

}  // namespace loadline::placement
