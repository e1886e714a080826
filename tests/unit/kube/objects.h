// Objects for tests, in one line each.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "kube/object.h"

namespace loadline::kube {

inline nlohmann::json pod_json(const std::string& ns, const std::string& name, const std::string& version,
                               const std::string& uid = "", const std::string& owner_uid = "") {
  nlohmann::json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       {{"namespace", ns}, {"name", name}, {"uid", uid.empty() ? "uid-" + name : uid}, {"resourceVersion", version}}}};
  if (!owner_uid.empty()) pod["metadata"]["ownerReferences"] = {{{"uid", owner_uid}, {"controller", true}}};
  return pod;
}

inline Object pod(const std::string& ns, const std::string& name, const std::string& version,
                  const std::string& uid = "", const std::string& owner_uid = "") {
  return Object(pod_json(ns, name, version, uid, owner_uid));
}

inline std::string watch_event(const std::string& type, const nlohmann::json& object) {
  return nlohmann::json({{"type", type}, {"object", object}}).dump();
}

inline std::string bookmark(const std::string& version) {
  return watch_event("BOOKMARK", {{"kind", "Pod"}, {"metadata", {{"resourceVersion", version}}}});
}

inline std::string list_body(const std::string& version, std::vector<nlohmann::json> items,
                             const std::string& next = "") {
  nlohmann::json list = {
      {"kind", "PodList"}, {"metadata", {{"resourceVersion", version}}}, {"items", std::move(items)}};
  if (!next.empty()) list["metadata"]["continue"] = next;
  return list.dump();
}

inline std::string status_body(int code, const std::string& reason) {
  return nlohmann::json({{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", reason}}).dump();
}

}  // namespace loadline::kube
