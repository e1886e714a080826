#include "webhook/gauges.h"

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace loadline::webhook {

using prometheus::BuildGauge;

Gauges::Gauges(prometheus::Registry& registry)
    : synced_(BuildGauge()
                  .Name("loadline_webhook_cache_synced")
                  .Help("1 once a complete list was taken in.")
                  .Register(registry)),
      objects_(BuildGauge().Name("loadline_webhook_cache_objects").Help("Objects in a cache.").Register(registry)),
      certificate_ends_(BuildGauge()
                            .Name("loadline_webhook_certificate_end_seconds")
                            .Help("Unix time at which a certificate ends; 0 before there is one.")
                            .Register(registry)),
      certificate_overdue_(BuildGauge()
                               .Name("loadline_webhook_certificate_overdue")
                               .Help("1 while a certificate nears its end that should have been renewed long ago.")
                               .Register(registry)) {}

void Gauges::refresh(const ClusterView& view, const CertificateKeeper& keeper) {
  for (const ClusterView::CacheState& cache : view.caches()) {
    synced_.Add({{"resource", cache.resource}}).Set(cache.synced ? 1 : 0);
    objects_.Add({{"resource", cache.resource}}).Set(static_cast<double>(cache.objects));
  }
  certificate_ends_.Add({{"certificate", "server"}}).Set(static_cast<double>(keeper.leaf_ends()));
  certificate_ends_.Add({{"certificate", "authority"}}).Set(static_cast<double>(keeper.authority_ends()));
  certificate_overdue_.Add({}).Set(keeper.overdue() ? 1 : 0);
}

}  // namespace loadline::webhook
