#include "serve/health.h"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <utility>

namespace loadline::serve {

std::vector<Route> health_routes(std::function<Readiness()> readiness, std::shared_ptr<prometheus::Registry> registry) {
  const auto alive = [](const Request&) { return Response{200, "ok\n"}; };
  const auto ready = [readiness = std::move(readiness)](const Request&) {
    const Readiness state = readiness();
    if (state.ready) return Response{200, "ok\n"};
    return Response{503, state.reason + "\n"};
  };
  const auto metrics = [registry = std::move(registry)](const Request&) {
    return Response{200, prometheus::TextSerializer().Serialize(registry->Collect()),
                    "text/plain; version=0.0.4; charset=utf-8"};
  };
  return {{Method::Get, "/healthz", Run::OnIoThread, alive},
          {Method::Get, "/readyz", Run::OnIoThread, ready},
          {Method::Get, "/metrics", Run::OnWorker, metrics}};
}

}  // namespace loadline::serve
