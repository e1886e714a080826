// The counts of the Kubernetes layer and of the controller, exported when asked.
//
// Thread-safety: Collect() on any thread. Ownership: what it reads must outlive the registry it is given to.
#pragma once

#include <prometheus/registry.h>

#include "kube/client.h"
#include "kube/events.h"
#include "kube/leader.h"
#include "operator/controller.h"

namespace loadline::controller {

/// A registry whose families are its own and, read at the moment of asking, ours.
class Metrics final : public prometheus::Registry {
 public:
  /// `leader` may be null: then this process leads always.
  Metrics(const kube::Client& client, const kube::EventRecorder& events, const Controller& controller,
          const kube::LeaderElector* leader)
      : client_(client), events_(events), controller_(controller), leader_(leader) {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const kube::Client& client_;
  const kube::EventRecorder& events_;
  const Controller& controller_;
  const kube::LeaderElector* leader_;
};

}  // namespace loadline::controller
