// The pods of one attempt as evidence: who runs, who is lost, what each says about an ending.
//
// Thread-safety: pure functions. Errors: none; foreign or broken objects read as knowing nothing.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/endings.h"
#include "operator/observed.h"

namespace loadline::controller {

/// A node that does not answer is given up after this. Longer than the API server's own 40 to 50 s to notice, shorter
/// than its 300 s to evict, because a whole gang stands still meanwhile.
inline constexpr std::chrono::seconds kLostContact{120};

/// A node that refused a pod may be the only one there is, and what was wrong may have passed.
inline constexpr std::chrono::minutes kAvoidance{10};

enum class NodeHealth { Well, Ending, Lost, Gone };

struct NodeView {
  NodeHealth health = NodeHealth::Well;
  std::string signal;     ///< what shows it, in words
  bool released = false;  ///< gone, or marked out-of-service: nothing runs there for sure
};

/// The node as far as training on it is concerned; `in_pool` (may be null) is the inventory's word, which knows the
/// notices of the providers. Lost only after kLostContact.
[[nodiscard]] NodeView view_node(const kube::Object& node, const placement::PoolNode* in_pool, TimePoint now);

struct Member {
  kube::Object pod;
  std::string phase;  ///< of the pod
  std::string node;   ///< empty while unassigned
  NodeView node_view;
  bool terminal = false;  ///< Succeeded or Failed
  bool over = false;      ///< terminal, or on a node that is provably gone: it can no longer write checkpoints
};

/// All pods of attempt `number`, of all attempts when `number` is 0.
[[nodiscard]] std::vector<Member> members(const Observed& seen, std::int64_t number);

/// The attempt's Job and how it stands.
struct JobView {
  kube::Object job;  ///< none: it does not exist
  bool complete = false, failed = false, failing = false;
  std::string reason, message;  ///< of the failure
  std::optional<TimePoint> failed_at;
};
[[nodiscard]] JobView view_job(const Observed& seen, std::int64_t number);

/// What each member says, and what the Job says of one, seen or not; one entry even when nobody says anything.
[[nodiscard]] std::vector<Evidence> evidence(const std::vector<Member>& gang, const JobView& job,
                                             const std::string& capacity);

/// Nodes that refused or lost pods of attempt `number` (as far as its pods are still there) through no fault of the
/// trainer: the next attempt stays off them, for kAvoidance after that one ended.
[[nodiscard]] std::set<std::string> avoided_nodes(const Observed& seen, std::int64_t number);

}  // namespace loadline::controller
