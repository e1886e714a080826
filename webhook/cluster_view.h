// The cluster as reviews see it: five caches, kept by list and watch, and a snapshot made of them. A review takes the
// snapshot and never waits for the network.
//
// Thread-safety: all members from any thread.
// Ownership: the client must outlive it; snapshots live on their own.
// Errors: an object that cannot be read is left out of the snapshot and logged once per version.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kube/client.h"
#include "kube/reflector.h"
#include "kube/store.h"
#include "webhook/snapshot.h"

namespace loadline::webhook {

class ClusterView {
 public:
  explicit ClusterView(kube::Client& client);

  void start();
  void stop();

  /// Newest, or at most `kStale` behind the caches.
  [[nodiscard]] std::shared_ptr<const Snapshot> snapshot();
  /// What has not been listed yet, in words; empty once all is.
  [[nodiscard]] std::string waiting_for() const;

  struct CacheState {
    std::string resource;
    bool synced = false;
    std::size_t objects = 0;
  };
  [[nodiscard]] std::vector<CacheState> caches() const;

  /// Watch events come in bursts; a snapshot made for each would cost more than it is worth.
  static constexpr std::chrono::milliseconds kStale{250};

 private:
  [[nodiscard]] Snapshot make() const;
  [[nodiscard]] std::array<const kube::Store*, 5> stores() const {
    return {&nodes_, &pods_, &pools_, &policies_, &jobs_};
  }

  kube::Store nodes_, pods_, pools_, policies_, jobs_;
  std::vector<std::unique_ptr<kube::Reflector>> reflectors_;
  std::atomic<std::uint64_t> changes_{0};
  std::vector<kube::Subscription> subscriptions_;

  std::mutex mutex_;
  std::shared_ptr<const Snapshot> latest_;  ///< guarded by mutex_, as are the two below
  std::uint64_t latest_changes_ = 0;
  std::chrono::steady_clock::time_point latest_made_;
};

/// What of a Pod or Node is kept: what placement reads.
void keep_placement_part_of_pod(nlohmann::json& pod);
void keep_placement_part_of_node(nlohmann::json& node);

}  // namespace loadline::webhook
