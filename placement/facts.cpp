#include "placement/facts.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "api/json_member.h"
#include "api/names.h"
#include "base/saturating.h"
#include "base/text.h"

namespace loadline::placement {
namespace {

using api::member;
using api::text;
using nlohmann::json;

bool truth(const json& value) { return value.is_boolean() && value.get<bool>(); }

std::map<std::string, std::string> text_map(const json& value) {
  std::map<std::string, std::string> out;
  if (!value.is_object()) return out;
  for (const auto& [key, item] : value.items()) {
    if (item.is_string()) out[key] = item.get<std::string>();
  }
  return out;
}

// Quantities are strings, but a hand-written file may hold bare numbers.
Resources resources(const json& value) {
  Resources out;
  if (!value.is_object()) return out;
  for (const auto& [key, item] : value.items()) {
    const std::string amount = item.is_string() ? item.get<std::string>() : item.is_number() ? item.dump() : "";
    const auto milli = parse_quantity_milli(amount);
    if (milli && *milli >= 0) out[key] = *milli;
  }
  return out;
}

void add(Resources& sum, const Resources& more) {
  for (const auto& [name, amount] : more) sum[name] = sat_add(sum[name], amount);
}

void raise_to(Resources& most, const Resources& other) {
  for (const auto& [name, amount] : other) most[name] = std::max(most[name], amount);
}

// What only has a limit requests that much.
Resources container_requests(const json& container) {
  const json& section = member(container, "resources");
  Resources out = resources(member(section, "limits"));
  for (const auto& [name, amount] : resources(member(section, "requests"))) out[name] = amount;
  return out;
}

}  // namespace

std::int64_t whole(const Resources& resources, const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() ? 0 : found->second / 1000;
}

bool NodeFacts::ready() const {
  return std::find(true_conditions.begin(), true_conditions.end(), "Ready") != true_conditions.end();
}

const std::string& NodeFacts::label(const std::string& key) const {
  static const std::string kNone;
  const auto found = labels.find(key);
  return found == labels.end() ? kNone : found->second;
}

NodeFacts node_facts(const json& node) {
  NodeFacts facts;
  const json& metadata = member(node, "metadata");
  const json& spec = member(node, "spec");
  const json& status = member(node, "status");
  facts.name = text(member(metadata, "name"));
  facts.labels = text_map(member(metadata, "labels"));
  facts.deleting = member(metadata, "deletionTimestamp").is_string();
  facts.cordoned = truth(member(spec, "unschedulable"));
  facts.allocatable = resources(member(status, "allocatable"));
  for (const json& taint : member(spec, "taints")) {
    facts.taints.push_back({text(member(taint, "key")), text(member(taint, "value")), text(member(taint, "effect"))});
  }
  for (const json& condition : member(status, "conditions")) {
    if (text(member(condition, "status")) == "True") facts.true_conditions.push_back(text(member(condition, "type")));
  }
  return facts;
}

// The scheduler's rule: all containers at once, or the largest init container with the
// sidecars started before it, whichever is more; plus the pod's overhead.
Resources pod_requests(const json& pod_spec) {
  Resources running;
  Resources sidecars;
  Resources starting;
  for (const json& container : member(pod_spec, "containers")) add(running, container_requests(container));
  for (const json& container : member(pod_spec, "initContainers")) {
    Resources here = container_requests(container);
    if (text(member(container, "restartPolicy")) == "Always") {
      add(sidecars, here);
      raise_to(starting, sidecars);
    } else {
      add(here, sidecars);
      raise_to(starting, here);
    }
  }
  add(running, sidecars);
  raise_to(running, starting);
  // What the pod itself requests stands for all of its containers; what it only limits, where none of them requests
  // any.
  const json& whole_pod = member(pod_spec, "resources");
  for (const auto& [name, amount] : resources(member(whole_pod, "limits"))) running.emplace(name, amount);
  for (const auto& [name, amount] : resources(member(whole_pod, "requests"))) running[name] = amount;
  add(running, resources(member(pod_spec, "overhead")));
  return running;
}

bool is_gpu(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view name = resource.substr(slash + 1);
  return name == "gpu" || name.starts_with("gpu.") || name.starts_with("mig-");
}

Resources requests_besides_gpus(const json& pod_template) {
  Resources all = pod_requests(member(pod_template, "spec"));
  std::erase_if(all, [](const auto& request) { return is_gpu(request.first); });
  return all;
}

PodFacts pod_facts(const json& pod) {
  PodFacts facts;
  const json& metadata = member(pod, "metadata");
  const json& spec = member(pod, "spec");
  facts.name = text(member(metadata, "name"));
  facts.namespaceName = text(member(metadata, "namespace"));
  facts.node = text(member(spec, "nodeName"));
  const std::string phase = text(member(member(pod, "status"), "phase"));
  facts.terminal = phase == "Succeeded" || phase == "Failed";
  facts.requests = pod_requests(spec);
  const auto labels = text_map(member(metadata, "labels"));
  if (const auto uid = labels.find(api::label::kJobUID); uid != labels.end()) facts.job_uid = uid->second;
  if (const auto attempt = labels.find(api::label::kAttempt); attempt != labels.end()) {
    facts.attempt = std::strtoll(attempt->second.c_str(), nullptr, 10);
  }
  return facts;
}

}  // namespace loadline::placement
