// Caches and certificates as Prometheus gauges.
//
// Thread-safety: refresh() from one thread.
#pragma once

#include "webhook/cluster_view.h"
#include "webhook/keeper.h"

namespace prometheus {
class Gauge;
class Registry;
template <class T>
class Family;
}  // namespace prometheus

namespace loadline::webhook {

class Gauges {
 public:
  explicit Gauges(prometheus::Registry& registry);
  void refresh(const ClusterView& view, const CertificateKeeper& keeper);

 private:
  prometheus::Family<prometheus::Gauge>& synced_;
  prometheus::Family<prometheus::Gauge>& objects_;
  prometheus::Family<prometheus::Gauge>& certificate_ends_;
  prometheus::Family<prometheus::Gauge>& certificate_overdue_;
};

}  // namespace loadline::webhook
