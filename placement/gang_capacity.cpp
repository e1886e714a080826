#include "placement/gang_capacity.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/saturating.h"
#include "placement/node_affinity.h"
#include "placement/node_state.h"
#include "placement/words.h"

namespace loadline::placement {
namespace {

using nlohmann::json;

std::optional<std::string> member(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::vector<api::Toleration> template_tolerations(const json& pod_spec) {
  std::vector<api::Toleration> out;
  const auto list = pod_spec.find("tolerations");
  if (list == pod_spec.end() || !list->is_array()) return out;
  for (const json& item : *list) {
    if (!item.is_object()) continue;
    api::Toleration toleration;
    toleration.key = member(item, "key");
    toleration.op = member(item, "operator");
    toleration.value = member(item, "value");
    toleration.effect = member(item, "effect");
    out.push_back(std::move(toleration));
  }
  return out;
}

// Why a node is none for the gang, whatever is free there.
struct Bar {
  Reason reason = Reason::Fits;
  std::string words;
};

// Pods that ask for so much each for which `have` less `taken` is enough. What a node does not say of itself is no
// limit, unless it is a device: those that are there are said.
std::int64_t pods_in(const Resources& have, const Resources& taken, const Resources& asked, bool devices) {
  std::int64_t pods = kSaturated;
  for (const auto& [name, milli] : asked) {
    if (milli <= 0) continue;
    const auto found = have.find(name);
    if (found != have.end()) {
      const auto used = taken.find(name);
      const std::int64_t left = found->second - (used == taken.end() ? 0 : used->second);
      pods = std::min(pods, std::max<std::int64_t>(0, left) / milli);
    } else if (devices && name.find('/') != std::string::npos) {
      return 0;
    }
  }
  return pods;
}

// Why the template keeps the gang off nodes like this one, now and for ever; `empty_pods` would fit when it is empty.
Bar template_bar(const PodNeeds& needs, const Pool& pool, const PoolNode& node, std::int64_t empty_pods) {
  for (const Taint& taint : node.taints) {
    // Taints that come and go with the node's health are judged by its state.
    if (taint.key.rfind("node.kubernetes.io/", 0) == 0 || taint.key == "karpenter.sh/unregistered") continue;
    if (!tolerates(pool.tolerations, taint) && !tolerates(needs.tolerations, taint)) {
      return {Reason::TaintNotTolerated, "taint " + taint_text(taint)};
    }
  }
  for (const auto& [key, value] : needs.node_selector) {
    const auto found = node.labels.find(key);
    if (found == node.labels.end() || found->second != value) {
      return {Reason::NotEnoughGPUs, std::string("without label ").append(key).append("=").append(value)};
    }
  }
  if (!matches_terms(needs.node_terms, node.name, node.labels)) {
    return {Reason::NotEnoughGPUs, "outside the template's nodeAffinity"};
  }
  if (empty_pods < 1) return {Reason::NotEnoughGPUs, "too small for the pod's CPU, memory or devices"};
  return {};
}

// Why no pod of the gang may ever run on this node: `by_template`, or what has befallen the node itself.
Bar bar_of(const Request& request, const PoolNode& node, const Bar& by_template) {
  if (!request.pinned_zone.empty() && !node.zone.empty() && node.zone != request.pinned_zone) {
    return {Reason::ZonePinned, "in zone " + node.zone};
  }
  if (node.state == NodeState::Partitioned) return {Reason::SharedGPUs, node.why};
  if (node.state == NodeState::Ending) return {Reason::NodesEnding, node.why};
  return by_template;
}

// What stands in the way, counted over nodes.
struct Tally {
  std::map<std::string, std::int64_t> pods_by_zone;
  std::int64_t busy = 0, other_resources = 0, avoided = 0, healthy_nodes = 0;
  std::map<NodeState, std::int64_t> unhealthy;
  std::map<Reason, std::int64_t> barred_nodes;
  std::map<Reason, std::int64_t> barred_pods;
  std::map<std::string, std::int64_t> words;  // of bars, with the number of nodes
  std::int64_t pods_existing = 0;             // on nodes that may serve one day
  std::int64_t pods_booting = 0;
  std::int64_t going = 0;   // nodes that an autoscaler may replace
  std::int64_t suited = 0;  // nodes that the template lets the gang onto, whatever is wrong with them now
};

Tally tally_nodes(const Request& request, const PodNeeds& needs, const Resources& asked, const Pool& pool,
                  const std::vector<NodeRoom>& rooms, const Gang& gang) {
  Tally tally;
  for (std::size_t i = 0; i < pool.nodes.size(); ++i) {
    const PoolNode& node = pool.nodes[i];
    const std::int64_t size = node.gpus > 0 ? node.gpus : pool.per_node;
    // Devices may be on their way; what the machine has does not change.
    const std::int64_t empty_pods = pods_in(node.allocatable, {}, asked, false);
    const std::int64_t whole_node = std::min(size / gang.gpus_per_node, empty_pods);
    const Bar by_template = template_bar(needs, pool, node, empty_pods);
    if (by_template.reason == Reason::Fits) ++tally.suited;
    const Bar bar = bar_of(request, node, by_template);
    if (bar.reason != Reason::Fits) {
      ++tally.barred_nodes[bar.reason];
      tally.barred_pods[bar.reason] += whole_node;
      ++tally.words[bar.words];
      if (bar.reason == Reason::NodesEnding) ++tally.going;
      continue;
    }
    tally.pods_existing += whole_node;
    if (node.state == NodeState::Arriving) tally.pods_booting += whole_node;
    if (node.state != NodeState::Usable) {
      ++tally.unhealthy[node.state];
      continue;
    }
    ++tally.healthy_nodes;
    if (request.avoided_nodes.count(node.name) > 0) {
      ++tally.avoided;
      continue;
    }
    const std::int64_t by_gpus = rooms[i].gpus / gang.gpus_per_node;
    const std::int64_t pods = std::min(by_gpus, pods_in(node.free_resources, rooms[i].taken, asked, true));
    if (by_gpus < whole_node) ++tally.busy;
    if (pods < by_gpus) ++tally.other_resources;
    tally.pods_by_zone[node.zone] += pods;
  }
  return tally;
}

// The zone that takes the whole gang with least to spare; a gang that fits no zone alone may
// span several unless its volume pins it.
void choose_zone(const Tally& tally, const Request& request, const Gang& gang, GangCapacity& capacity) {
  std::int64_t all = 0;
  const std::string* best = nullptr;
  std::int64_t best_pods = 0;
  for (const auto& [zone, pods] : tally.pods_by_zone) {
    all = sat_add(all, pods);
    if (pods < gang.nodes || (best != nullptr && pods >= best_pods)) continue;
    best = &zone;
    best_pods = pods;
  }
  capacity.pods_now = all;
  capacity.zone = best != nullptr ? *best : request.pinned_zone;
}

std::string count_words(const Tally& tally) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t count, const std::string& words) {
    if (count > 0) parts.push_back(counted(count, "node") + " " + words);
  };
  add(tally.busy, "busy");
  add(tally.other_resources, "short of CPU, memory, pods or network devices");
  add(tally.avoided, "avoided after failures there");
  for (const auto& [state, count] : tally.unhealthy) {
    add(count, state == NodeState::Cordoned   ? "cordoned"
               : state == NodeState::Arriving ? "Ready without GPUs yet"
                                              : "not ready");
  }
  for (const auto& [words, count] : tally.words) add(count, words);
  return join(parts, ", ");
}

// The one cause that would explain it alone; several causes name the commonest.
Reason permanent_cause(const Tally& tally, const Gang& gang) {
  Reason cause = Reason::NotEnoughGPUs;
  std::int64_t most = 0;
  for (const auto& [reason, pods] : tally.barred_pods) {
    if (tally.pods_existing + pods < gang.nodes || pods <= most) continue;
    cause = reason;
    most = pods;
  }
  return cause;
}

// Whether the template asks for another value of a label than all nodes of the pool have.
bool contradicts(const PodNeeds& needs, const Pool& pool) {
  return std::any_of(needs.node_selector.begin(), needs.node_selector.end(), [&](const auto& wanted) {
    const auto found = pool.node_selector.find(wanted.first);
    return found != pool.node_selector.end() && found->second != wanted.second;
  });
}

}  // namespace

PodNeeds pod_needs(const api::TrainingJob& job) {
  PodNeeds needs;
  const json& pod = job.spec.podTemplate;
  if (!pod.is_object() || !pod.contains("spec") || !pod["spec"].is_object()) return needs;
  const json& spec = pod["spec"];
  needs.resources = requests_besides_gpus(pod);
  needs.node_terms = node_selector_terms(spec);
  needs.tolerations = template_tolerations(spec);
  if (const auto selector = spec.find("nodeSelector"); selector != spec.end() && selector->is_object()) {
    for (const auto& [key, value] : selector->items()) {
      if (value.is_string()) needs.node_selector[key] = value.get<std::string>();
    }
  }
  return needs;
}

Gang gang_of(std::int64_t gpus, std::int64_t per_node) {
  const std::int64_t total = std::max<std::int64_t>(1, gpus);
  std::int64_t each = std::min(total, std::max<std::int64_t>(1, per_node));
  while (total % each != 0) --each;
  return {total / each, each};
}

GangCapacity gang_capacity(const Request& request, const PodNeeds& needs, const Pool& pool, const PoolRoom& room,
                           const Gang& gang, std::int64_t host_bytes) {
  GangCapacity capacity;
  Resources each = pool.asked_by_pod(needs.resources, gang.nodes, gang.gpus_per_node);
  std::int64_t& memory = each["memory"];
  memory = std::max(memory, sat_mul(host_bytes, 1000));
  const Tally tally = tally_nodes(request, needs, each, pool, room.nodes, gang);
  choose_zone(tally, request, gang, capacity);

  const std::int64_t existing = static_cast<std::int64_t>(pool.nodes.size()) - tally.going;
  const std::int64_t can_come = std::max<std::int64_t>(0, pool.max_nodes.value_or(0) - existing);
  const std::int64_t more = std::max<std::int64_t>(0, can_come - room.nodes_to_come);
  const auto pool_zone = pool.node_selector.find("topology.kubernetes.io/zone");
  const bool elsewhere =
      !request.pinned_zone.empty() && pool_zone != pool.node_selector.end() && pool_zone->second != request.pinned_zone;
  // New nodes of a pool whose nodes are all in other zones would most likely be there too.
  const bool foreign = !request.pinned_zone.empty() && !pool.nodes.empty() &&
                       tally.barred_nodes.count(Reason::ZonePinned) > 0 && tally.pods_existing == 0;
  // And new nodes are like those that are there: where the template keeps the gang off all of them, more do not help.
  const bool unsuited = pool.nodes.empty() ? contradicts(needs, pool) : tally.suited == 0;
  const bool grows = !elsewhere && !foreign && !unsuited;
  const std::int64_t on_one = pool.per_node / gang.gpus_per_node;
  capacity.pods_scaled = sat_add(capacity.pods_now, grows ? sat_mul(more, on_one) : 0);
  capacity.pods_ever = sat_add(tally.pods_existing, grows ? sat_mul(can_come, on_one) : 0);
  if (capacity.pods_now >= gang.nodes) return capacity;

  const std::string asked = "needs " + counted(gang.nodes, "node") + " with " + counted(gang.gpus_per_node, "free GPU");
  const std::string causes = count_words(tally);
  const std::string because = causes.empty() ? "" : ": " + causes;
  if (capacity.pods_ever < gang.nodes) {
    capacity.shortage = elsewhere ? Reason::ZonePinned : permanent_cause(tally, gang);
    const std::string grown = grows && can_come > 0 ? ", scaled out to " + counted(*pool.max_nodes, "node") : "";
    capacity.detail =
        asked + ", the pool can have " + std::to_string(capacity.pods_ever) + " at most" + grown + because;
    if (capacity.shortage == Reason::ZonePinned) {
      capacity.detail = "the checkpoint volume is in zone " + request.pinned_zone + "; " + capacity.detail;
    }
    return capacity;
  }
  if (capacity.pods_scaled >= gang.nodes) {
    capacity.shortage = Reason::NoFreeGPUs;
    capacity.detail = asked + ": " + std::to_string(capacity.pods_now) + " free now, " +
                      std::to_string(gang.nodes - capacity.pods_now) + " more by scaling up";
    return capacity;
  }
  const bool booting = capacity.pods_scaled + tally.pods_booting >= gang.nodes;
  const bool healthy_would_do = tally.unhealthy.empty() || tally.busy > 0 || tally.other_resources > 0;
  capacity.shortage = booting ? Reason::NodesBooting : healthy_would_do ? Reason::NoFreeGPUs : Reason::NodesEnding;
  capacity.detail = asked + ", " + std::to_string(capacity.pods_now) + " free now" + because;
  return capacity;
}

}  // namespace loadline::placement
