// What the caches keep of each object: only what a decision reads. A projected Node does not change with heartbeats,
// so a quiet cluster wakes nobody.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace loadline::controller {

void project_pod(nlohmann::json& pod);
void project_node(nlohmann::json& node);
void project_job(nlohmann::json& job);
void project_config(nlohmann::json& config);
void project_claim(nlohmann::json& claim);
void project_volume(nlohmann::json& volume);
void project_namespace(nlohmann::json& ns);

}  // namespace loadline::controller
