#include "serve/server_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <utility>

namespace loadline::serve {

using prometheus::BuildCounter;
using prometheus::BuildGauge;

ServerMetrics::ServerMetrics(std::string server, std::shared_ptr<prometheus::Registry> registry)
    : server_(std::move(server)),
      registry_(registry ? std::move(registry) : std::make_shared<prometheus::Registry>()),
      connections_(BuildGauge()
                       .Name("loadline_http_connections")
                       .Help("Connections open now.")
                       .Register(*registry_)
                       .Add({{"server", server_}})),
      refused_(BuildCounter()
                   .Name("loadline_http_connections_refused_total")
                   .Help("Connections closed at once because too many were open.")
                   .Register(*registry_)
                   .Add({{"server", server_}})),
      displaced_(BuildCounter()
                     .Name("loadline_http_connections_displaced_total")
                     .Help("Idle connections closed to make room for new ones.")
                     .Register(*registry_)
                     .Add({{"server", server_}})),
      handshakes_failed_(BuildCounter()
                             .Name("loadline_http_tls_handshakes_failed_total")
                             .Help("TLS handshakes that did not finish.")
                             .Register(*registry_)
                             .Add({{"server", server_}})),
      timeouts_(BuildCounter()
                    .Name("loadline_http_timeouts_total")
                    .Help("Steps of connections that ran past their deadline.")
                    .Register(*registry_)),
      answers_(
          BuildCounter().Name("loadline_http_responses_total").Help("Responses by status code.").Register(*registry_)) {
}

void ServerMetrics::set_connections(std::size_t open) { connections_.Set(static_cast<double>(open)); }
void ServerMetrics::refused() { refused_.Increment(); }
void ServerMetrics::displaced() { displaced_.Increment(); }
void ServerMetrics::handshake_failed() { handshakes_failed_.Increment(); }

void ServerMetrics::timed_out(std::string_view step) {
  timeouts_.Add({{"server", server_}, {"step", std::string(step)}}).Increment();
}

void ServerMetrics::answered(int status) {
  answers_.Add({{"server", server_}, {"code", std::to_string(status)}}).Increment();
}

}  // namespace loadline::serve
