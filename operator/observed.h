// What one decision is made from: a job, everything that belongs to it, and the cluster it would be placed in.
// Nothing else goes into a decision, so a decision can be repeated, and tested, from a value.
//
// Thread-safety: plain values; objects and cluster facts are shared and immutable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/placement_policy.h"
#include "api/training_job.h"
#include "base/text.h"
#include "kube/object.h"
#include "kube/resource.h"
#include "placement/inventory.h"
#include "placement/ledger.h"

namespace loadline::controller {

/// A read-only view of the API: caches in the program, a map in tests.
class Reader {
 public:
  virtual ~Reader() = default;
  /// The object, or none.
  [[nodiscard]] virtual kube::Object get(const kube::Resource& resource, const kube::ObjectKey& key) const = 0;
  /// All of a namespace; of the whole cluster when `ns` is empty.
  [[nodiscard]] virtual std::vector<kube::Object> list(const kube::Resource& resource, const std::string& ns) const = 0;
  /// Whether the cluster really has no such node: asked from the server itself, as a cache may lag behind.
  [[nodiscard]] virtual kube::Object confirm_node(const std::string& name) const = 0;
  /// The TrainingJob as the server has it now; none when it is gone. The cached one when the server does not say.
  [[nodiscard]] virtual kube::Object confirm_job(const kube::ObjectKey& key) const = 0;
  /// Whether the server tells of changes to all that cluster_facts() reads. If not, what looks free may be taken.
  [[nodiscard]] virtual bool in_touch() const = 0;
};

/// What all jobs are placed against.
struct ClusterFacts {
  placement::Inventory inventory;
  std::vector<api::PlacementPolicy> policies;
  placement::Ledger ledger;
};

/// Objects that cannot be read are left out: one bad object must not stop the others.
[[nodiscard]] std::shared_ptr<const ClusterFacts> cluster_facts(const Reader& reader, TimePoint now);

/// The API server would not have a child as we wrote it.
struct Refusal {
  std::string plural, name;  ///< of the child: jobs, llama-sft-a1
  std::string message;
  bool permanent = false;  ///< the object itself is wrong (422); otherwise a right or a quota is missing (403)
};

struct Observed {
  TimePoint now;
  kube::Object stored;                          ///< the TrainingJob as the server has it
  bool ours = true;                             ///< is_ours(); nothing below is filled in otherwise
  api::TrainingJob job;                         ///< the same, typed; the spec is empty when it cannot be read
  std::vector<kube::Object> jobs;               ///< batch Jobs this very incarnation owns
  std::vector<kube::Object> pods;               ///< of all its attempts
  std::vector<kube::Object> configs;            ///< plan ConfigMaps it owns
  kube::Object service;                         ///< under our name, whoever owns it
  kube::Object claim;                           ///< the checkpoint claim, ours or the user's
  kube::Object volume;                          ///< bound to the claim
  std::map<std::string, kube::Object> nodes;    ///< of the pods; a node that is absent here is gone
  std::shared_ptr<const ClusterFacts> cluster;  ///< never null
  bool in_touch = true;                         ///< Reader::in_touch(), asked before `cluster` was read
  std::optional<std::string> log_tail;          ///< of rank 0 of the running attempt, when it was read lately
  std::optional<Refusal> refusal;               ///< of the last try to carry out a decision
};

/// Whether the job may be touched at all: not when spec.managedBy names another controller, nor when its namespace has
/// the label loadline.dev/ignore. A namespace that is not known yet may have it.
[[nodiscard]] bool is_ours(const Reader& reader, const kube::Object& job);

/// Reads what all jobs are placed against, or gives what is known to be the same; never null.
using Facts = std::function<std::shared_ptr<const ClusterFacts>()>;

/// Nothing when there is no such job, or none any more. `facts` is called once, after in_touch() was asked.
[[nodiscard]] std::optional<Observed> observe(const Reader& reader, const Facts& facts, const kube::ObjectKey& key,
                                              TimePoint now);

/// The name of the job's checkpoint claim: the user's, else the one we make.
[[nodiscard]] std::string claim_name(const api::TrainingJob& job);

}  // namespace loadline::controller
