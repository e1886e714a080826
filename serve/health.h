// The three routes every program of ours serves: /healthz (the process answers), /readyz (it can do its work) and
// /metrics (Prometheus text).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/http.h"

namespace prometheus {
class Registry;
}

namespace loadline::serve {

struct Readiness {
  bool ready = false;
  std::string reason;  ///< what is still missing, for the person who curls it
};

/// `readiness` is called per request, from an I/O thread: it must not block.
[[nodiscard]] std::vector<Route> health_routes(std::function<Readiness()> readiness,
                                               std::shared_ptr<prometheus::Registry> registry);

}  // namespace loadline::serve
