// Required node affinity of a pod, as kube-scheduler matches it.
//
// Thread-safety: pure functions. Errors: total; a requirement that makes no sense matches no node, as the API server
// would not have taken it.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace loadline::placement {

/// affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms of a PodSpec; null when there
/// are none.
[[nodiscard]] const nlohmann::json& node_selector_terms(const nlohmann::json& pod_spec);

/// Whether a node satisfies one of the terms; null asks for nothing.
[[nodiscard]] bool matches_terms(const nlohmann::json& terms, const std::string& node,
                                 const std::map<std::string, std::string>& labels);

}  // namespace loadline::placement
