// Leader election by a Lease (coordination.k8s.io/v1), interoperable with client-go's.
//
// Guarantees: with clocks of equal speed, however wrong their hands, two members do not both believe to lead: the
// lease of another is judged only by when we last saw it change. Caveat: this is not fencing. A process that was
// stopped and goes on may send one more write; so every write must also be safe by name, uid or resourceVersion.
//
// Thread-safety: all members from any thread. One thread of its own; callbacks run on it. What they throw is logged,
// and when on_started throws the lease is given back: this process cannot lead. Ownership: the Client must outlive it;
// give it one of its own, so that no other traffic delays a renewal.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "kube/client.h"
#include "kube/clock.h"
#include "kube/metrics.h"

namespace loadline::kube {

/// A name for this process that no other has, not even its next start on the same machine: "HOST_PID_RANDOM".
[[nodiscard]] std::string process_identity();

/// lease > renew_deadline > 1.2 * retry must hold.
struct LeaderOptions {
  ObjectKey lease = {};       ///< namespace and name of the Lease
  std::string identity = {};  ///< unique per process: pod name and a random part
  std::chrono::milliseconds lease_duration = std::chrono::seconds(15);
  std::chrono::milliseconds renew_deadline = std::chrono::seconds(10);
  std::chrono::milliseconds retry_period = std::chrono::seconds(2);
  std::function<void()> on_started = {};  ///< we lead
  /// We no longer lead, or cannot prove it: stop writing, and end the process. Also called after a release by stop().
  std::function<void()> on_stopped = {};
  std::function<void(const std::string& holder)> on_new_leader = {};  ///< somebody else, or we, was seen to hold it
  std::shared_ptr<Clock> clock = system_clock();
};

class LeaderElector {
 public:
  LeaderElector(Client& client, LeaderOptions options);
  /// stop().
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  /// Error: Code::Invalid when the times or names do not make sense.
  [[nodiscard]] Status start();
  /// Gives the lease back if we hold it, so that another need not wait it out, and ends the thread.
  void stop();

  /// Whether we hold the lease now. False from the moment the renew deadline has passed, even while a renewal hangs.
  [[nodiscard]] bool is_leader() const;
  /// The holder last seen; empty before the first look and for a free lease.
  [[nodiscard]] std::string holder() const;
  [[nodiscard]] const LeaderMetrics& metrics() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loadline::kube
