// What placement needs of a core/v1 Node and Pod, read from their JSON.
//
// Thread-safety: plain values; pure functions.
// Errors: total: any JSON gives facts; what is missing or of the wrong type is empty.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::placement {

/// Amounts by resource name, in thousandths ("nvidia.com/gpu": 8000, "cpu": 500, "memory" in
/// thousandths of a byte).
using Resources = std::map<std::string, std::int64_t>;

/// The whole units of a resource; 0 when absent.
[[nodiscard]] std::int64_t whole(const Resources& resources, const std::string& name);

struct Taint {
  std::string key, value, effect;
  bool operator==(const Taint&) const = default;
};

struct NodeFacts {
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  std::vector<std::string> true_conditions;  ///< types whose status is "True", Ready among them
  Resources allocatable;
  bool cordoned = false;  ///< spec.unschedulable
  bool deleting = false;  ///< has a deletionTimestamp

  [[nodiscard]] bool ready() const;
  [[nodiscard]] const std::string& label(const std::string& key) const;  ///< empty when absent
};

struct PodFacts {
  std::string name, namespaceName;
  std::string node;       ///< spec.nodeName; empty while unassigned
  bool terminal = false;  ///< phase Succeeded or Failed: holds nothing any more
  Resources requests;     ///< of the whole pod, as the scheduler counts: containers, init, sidecars, overhead
  std::string job_uid;    ///< of the TrainingJob it belongs to; empty for others
  std::int64_t attempt = 0;
};

[[nodiscard]] NodeFacts node_facts(const nlohmann::json& node);
[[nodiscard]] PodFacts pod_facts(const nlohmann::json& pod);

/// The requests of a PodSpec, as the scheduler counts them.
[[nodiscard]] Resources pod_requests(const nlohmann::json& pod_spec);

/// A resource that counts GPUs: nvidia.com/gpu, amd.com/gpu, nvidia.com/mig-1g.10gb, nvidia.com/gpu.shared.
[[nodiscard]] bool is_gpu(std::string_view resource);

/// What a pod of this template asks for besides GPUs: how many of these it gets is the layout's to say.
[[nodiscard]] Resources requests_besides_gpus(const nlohmann::json& pod_template);

}  // namespace loadline::placement
