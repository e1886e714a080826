// Which change wakes which jobs. Waking too many costs a decision without actions; waking too few costs a stuck job,
// so in doubt all that could care are woken.
//
// Thread-safety: the listeners run on the reflectors' threads; wake_everything() on any.
// Ownership: caches and queues must outlive it.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "kube/workqueue.h"
#include "operator/caches.h"

namespace loadline::controller {

class Wakeups {
 public:
  /// Subscribes to the caches, which must not have been started.
  Wakeups(Caches& caches, kube::WorkQueue& jobs, kube::WorkQueue& pools);

  /// All jobs and all pools and policies: at the start, when nothing was heard yet.
  void wake_everything();

 private:
  void on_job(const kube::Change& change);
  void on_child(const kube::Change& change);
  void on_pod(const kube::Change& change);
  void on_claim(const kube::Change& change);
  void on_node(const kube::Change& change);
  void on_namespace(const kube::Change& change);
  void on_pool_or_policy(const kube::Change& change, bool pool);
  void wake_uid(const std::string& uid);
  /// Jobs that capacity could help: those that wait for it.
  void wake_waiting();
  void wake_unfinished();
  void wake_pools();

  Caches& caches_;
  kube::WorkQueue& jobs_;
  kube::WorkQueue& pools_;
  std::mutex mutex_;
  std::map<std::string, kube::ObjectKey> by_uid_;
};

}  // namespace loadline::controller
