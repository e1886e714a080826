#include "placement/node_state.h"

#include <algorithm>
#include <optional>

namespace loadline::placement {
namespace {

std::string filled(const LabelRow& row, const std::string& value) {
  std::string says = row.says;
  if (const auto hole = says.find("{value}"); hole != std::string::npos) says.replace(hole, 7, value);
  return says;
}

// The first row whose label is on the node with a value that is not harmless.
std::optional<std::string> label_says(const NodeFacts& node, const std::vector<LabelRow>& rows) {
  for (const LabelRow& row : rows) {
    const auto found = node.labels.find(row.key);
    if (found == node.labels.end()) continue;
    if (row.value && *row.value != found->second) continue;
    if (std::find(row.unless.begin(), row.unless.end(), found->second) != row.unless.end()) continue;
    return filled(row, found->second);
  }
  return std::nullopt;
}

std::optional<std::string> taint_says(const NodeFacts& node, const std::vector<TaintRow>& rows) {
  for (const Taint& taint : node.taints) {
    for (const TaintRow& row : rows) {
      if (row.matches(taint)) return row.says + " (taint " + taint_text(taint) + ")";
    }
  }
  return std::nullopt;
}

// MIG slices that are there; kubelet keeps names with a count of 0 after MIG was turned off.
std::optional<std::string> sliced(const NodeFacts& node) {
  constexpr std::string_view kSlice = "nvidia.com/mig-";
  for (const auto& [name, milli] : node.allocatable) {
    if (name.rfind(kSlice, 0) == 0 && milli > 0) return "GPUs are cut into MIG slices (" + name + ")";
  }
  const std::string& product = node.label("nvidia.com/gpu.product");
  if (product.find("-MIG-") != std::string::npos) return "GPUs are cut into MIG slices (" + product + ")";
  if (const auto end = product.rfind("-SHARED"); end != std::string::npos && end + 7 == product.size()) {
    return "GPUs are shared (" + product + ")";
  }
  return std::nullopt;
}

}  // namespace

std::string taint_text(const Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
}

NodeVerdict judge_node(const NodeFacts& node, const std::string& resource, const CloudTables& tables) {
  if (node.deleting) return {NodeState::Ending, "being deleted"};
  if (const auto why = taint_says(node, tables.ending_taints)) return {NodeState::Ending, *why};
  if (const auto why = label_says(node, tables.ending)) return {NodeState::Ending, *why};
  for (const std::string& condition : node.true_conditions) {
    for (const TaintRow& row : tables.ending_conditions) {
      if (row.key == condition) return {NodeState::Ending, row.says + " (condition " + condition + ")"};
    }
  }
  if (const auto why = taint_says(node, tables.not_ready_taints)) return {NodeState::NotReady, *why};
  if (!node.ready()) return {NodeState::NotReady, "not ready"};
  if (node.cordoned) return {NodeState::Cordoned, "cordoned"};
  if (const auto why = label_says(node, tables.partitioned)) return {NodeState::Partitioned, *why};
  if (const auto why = sliced(node)) return {NodeState::Partitioned, *why};
  if (whole(node.allocatable, resource) <= 0) return {NodeState::Arriving, "no " + resource + " allocatable yet"};
  return {};
}

}  // namespace loadline::placement
