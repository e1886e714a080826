// Keeps the status of GPUPools and PlacementPolicies right: one thread, as nothing there is urgent.
//
// Thread-safety: work() on one thread; the queue from any.
// Ownership: caches and actor must outlive it.
#pragma once

#include <string>

#include "kube/workqueue.h"
#include "operator/act.h"
#include "operator/caches.h"

namespace loadline::controller {

class PoolReconciler {
 public:
  PoolReconciler(Caches& caches, const Actor& actor) : caches_(caches), actor_(actor) {}

  /// Keys of this queue hold the kind where others hold the namespace.
  [[nodiscard]] static kube::ObjectKey key(bool pool, const std::string& name);
  [[nodiscard]] kube::WorkQueue& queue() { return queue_; }
  /// Until the queue is shut down.
  void work();

 private:
  [[nodiscard]] ActOutcome reconcile(const kube::ObjectKey& key) const;

  Caches& caches_;
  const Actor& actor_;
  kube::WorkQueue queue_;
};

}  // namespace loadline::controller
