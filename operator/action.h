// What the reconciler wants done, as values: each Action is one request to the API server (or one event), so
// that every gap between two actions is a point where the process may die and the next decision goes on.
//
// Thread-safety: plain values.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kube/events.h"
#include "kube/object.h"
#include "kube/resource.h"

namespace loadline::controller {

/// Creates a child under its deterministic name. A name that is taken counts as done when the taker carries
/// `owner_uid` (as owner, or as label where there must be no owner); otherwise the work waits.
struct Create {
  kube::Resource resource;
  nlohmann::json object;
  std::string owner_uid;
};

/// Replaces the status subresource. metadata.uid and resourceVersion in `object` make it conditional.
struct WriteStatus {
  kube::Resource resource;
  nlohmann::json object;
};

/// RFC 7396 on the main resource; metadata.resourceVersion in `patch` makes it conditional.
struct MergePatch {
  kube::Resource resource;
  kube::ObjectKey key;
  nlohmann::json patch;
};

/// Deletes exactly this incarnation; one that is gone already counts as done.
struct Remove {
  kube::Resource resource;
  kube::ObjectKey key;
  std::string uid;
  std::optional<int> grace_seconds;  ///< 0 only for pods whose node is provably gone
};

/// Tells people; never fails and never holds up what follows.
struct Tell {
  kube::ObjectReference regarding;
  kube::Event event;
};

using Action = std::variant<Create, WriteStatus, MergePatch, Remove, Tell>;

/// One phrase for logs and test failures: "create jobs llama-sft-a1".
[[nodiscard]] std::string describe(const Action& action);

/// What to do now, in this order, and when to look again if nothing happens before.
struct Decision {
  std::vector<Action> actions;
  std::optional<std::chrono::milliseconds> requeue_after;
  /// The status write claims GPUs: it must be decided and written while no other job's is.
  bool claims_capacity = false;
};

}  // namespace loadline::controller
