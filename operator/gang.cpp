#include "operator/gang.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/names.h"
#include "operator/names.h"

namespace loadline::controller {
namespace {

using kube::array_at;
using kube::string_at;
using nlohmann::json;

std::string text_at(const json& root, kube::JsonPath path) { return std::string(string_at(root, path).value_or("")); }

const json* condition_of(const json& object, std::string_view type) {
  for (const json& c : array_at(object, {"status", "conditions"})) {
    if (string_at(c, {"type"}) == type) return &c;
  }
  return nullptr;
}

bool is_true(const json* condition) { return condition != nullptr && string_at(*condition, {"status"}) == "True"; }

/// The node in the inventory, which knows the providers' notices.
const placement::PoolNode* pool_node(const Observed& seen, const std::string& name) {
  for (const auto& pool : seen.cluster->inventory.pools) {
    for (const placement::PoolNode& node : pool->nodes) {
      if (node.name == name) return &node;
    }
  }
  return nullptr;
}

/// The trainer's container status, else the first one that has something to say.
const json* container_of(const json& pod) {
  const json* first = nullptr;
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json& c : array_at(pod, {"status", list})) {
      if (string_at(c, {"name"}) == api::kTrainerContainer) return &c;
      if (first == nullptr) first = &c;
    }
  }
  return first;
}

void read_container(const json& container, Evidence& e) {
  if (const json* ended = kube::json_at(container, {"state", "terminated"})) {
    e.container_reason = text_at(*ended, {"reason"});
    e.exit_code = kube::int_at(*ended, {"exitCode"});
    e.log_tail = text_at(*ended, {"message"});
  }
  if (const json* waiting = kube::json_at(container, {"state", "waiting"})) {
    e.waiting_reason = text_at(*waiting, {"reason"});
    if (e.message.empty()) e.message = text_at(*waiting, {"message"});
  }
}

const char* state_word(const NodeView& view) {
  switch (view.health) {
    case NodeHealth::Gone: return "gone";
    case NodeHealth::Lost: return "lost";
    case NodeHealth::Ending: return "ending";
    case NodeHealth::Well: break;
  }
  return "";
}

Evidence evidence_of(const Member& member) {
  const json& pod = member.pod.json();
  Evidence e;
  e.pod = member.pod.name();
  e.node = member.node;
  e.terminal = member.terminal;
  e.node_state = state_word(member.node_view);
  e.node_signal = member.node_view.signal;
  // A notice alone ends nothing: the pod may use the time to write a checkpoint.
  if (member.node_view.health == NodeHealth::Ending && !member.terminal && !member.pod.deleting()) e.node_state.clear();
  const json* disrupted = condition_of(pod, "DisruptionTarget");
  if (is_true(disrupted)) {
    e.disruption = text_at(*disrupted, {"reason"});
    e.message = text_at(*disrupted, {"message"});
  }
  e.pod_reason = text_at(pod, {"status", "reason"});
  if (e.message.empty()) e.message = text_at(pod, {"status", "message"});
  if (const json* container = container_of(pod)) read_container(*container, e);
  if (e.message.empty()) {
    const json* scheduled = condition_of(pod, "PodScheduled");
    if (scheduled != nullptr && !is_true(scheduled)) e.message = text_at(*scheduled, {"message"});
  }
  return e;
}

/// The pod in the Job controller's "Pod NAMESPACE/NAME has condition ..."; empty when it is worded otherwise.
std::string pod_named_in(const std::string& message) {
  for (const char* lead : {"Pod ", "pod "}) {
    const std::size_t at = message.find(lead);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + std::string_view(lead).size();
    const std::size_t end = std::min(message.find(' ', begin), message.size());
    const std::size_t slash = message.find('/', begin);
    if (slash < end) return message.substr(slash + 1, end - slash - 1);
  }
  return "";
}

/// The Job's own word is evidence of the pod that it names. That pod may be gone already, and its node with it.
void add_job_word(std::vector<Evidence>& out, const JobView& job) {
  const std::string name = pod_named_in(job.message);
  auto about = std::find_if(out.begin(), out.end(), [&](const Evidence& e) { return !name.empty() && e.pod == name; });
  if (about == out.end()) {
    about = out.emplace(out.end());
    about->pod = name;
    about->message = name.empty() ? job.message : "it was gone before it could be asked why";
  }
  about->job_reason = job.reason;
}

}  // namespace

NodeView view_node(const kube::Object& node, const placement::PoolNode* in_pool, TimePoint now) {
  if (!node) return {NodeHealth::Gone, "the node is gone", true};
  for (const json& taint : array_at(node.json(), {"spec", "taints"})) {
    if (string_at(taint, {"key"}) == "node.kubernetes.io/out-of-service") {
      return {NodeHealth::Lost, "marked out of service", true};
    }
  }
  NodeView view;
  if (in_pool != nullptr && in_pool->state == placement::NodeState::Ending) {
    view = {NodeHealth::Ending, in_pool->why, false};
  }
  const json* ready = condition_of(node.json(), "Ready");
  if (ready != nullptr && !is_true(ready)) {
    view = {};
    const auto since = kube::time_at(*ready, {"lastTransitionTime"});
    if (since && now - *since >= kLostContact) {
      view = {NodeHealth::Lost, "not ready for " + duration_text(std::chrono::duration<double>(now - *since).count()),
              false};
    }
  }
  return view;
}

std::vector<Member> members(const Observed& seen, std::int64_t number) {
  std::vector<Member> gang;
  for (const kube::Object& pod : seen.pods) {
    if (number != 0 && pod.label(api::label::kAttempt) != std::to_string(number)) continue;
    Member member;
    member.pod = pod;
    member.phase = text_at(pod.json(), {"status", "phase"});
    member.node = text_at(pod.json(), {"spec", "nodeName"});
    member.terminal = member.phase == "Succeeded" || member.phase == "Failed";
    if (!member.node.empty()) {
      // A node that the caches did not know was asked for: what is missing here is gone.
      const auto node = seen.nodes.find(member.node);
      member.node_view =
          view_node(node == seen.nodes.end() ? kube::Object{} : node->second, pool_node(seen, member.node), seen.now);
    }
    member.over = member.terminal || member.node_view.released;
    gang.push_back(std::move(member));
  }
  return gang;
}

JobView view_job(const Observed& seen, std::int64_t number) {
  JobView view;
  const std::string name = attempt_job_name(seen.job.metadata.name, number);
  for (const kube::Object& job : seen.jobs) {
    if (job.name() == name) view.job = job;
  }
  if (!view.job) return view;
  const json& job = view.job.json();
  view.complete = is_true(condition_of(job, "Complete"));
  const json* failed = condition_of(job, "Failed");
  const json* failing = condition_of(job, "FailureTarget");
  view.failed = is_true(failed);
  view.failing = view.failed || is_true(failing);
  if (const json* word = view.failed ? failed : failing; view.failing && word != nullptr) {
    view.reason = text_at(*word, {"reason"});
    view.message = text_at(*word, {"message"});
    view.failed_at = kube::time_at(is_true(failing) ? *failing : *word, {"lastTransitionTime"});
  }
  return view;
}

std::vector<Evidence> evidence(const std::vector<Member>& gang, const JobView& job, const std::string& capacity) {
  std::vector<Evidence> out;
  out.reserve(gang.size() + 1);
  for (const Member& member : gang) out.push_back(evidence_of(member));
  if (!job.reason.empty()) add_job_word(out, job);
  if (out.empty()) out.emplace_back();
  for (Evidence& e : out) e.capacity = capacity;
  return out;
}

std::set<std::string> avoided_nodes(const Observed& seen, std::int64_t number) {
  std::set<std::string> out;
  if (number == 0) return out;
  for (const api::AttemptStatus& attempt : seen.job.status.attempts) {
    const auto end = parse_rfc3339(attempt.endTime.value_or(""));
    if (attempt.number == number && end && seen.now - *end >= kAvoidance) return out;
  }
  for (const Member& member : members(seen, number)) {
    if (member.node.empty()) continue;
    const Evidence e = evidence_of(member);
    const bool refused = member.phase == "Failed" && !e.pod_reason.empty();
    if (refused || member.node_view.health == NodeHealth::Lost) out.insert(member.node);
  }
  return out;
}

}  // namespace loadline::controller
