// The webhook's HTTP face: POST /mutate and /validate.
//
// Thread-safety: the handlers may run on several threads.
// Errors: 400 for what is no AdmissionReview or too much of one, 415 for what is no JSON. Everything else is an
// AdmissionReview.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "serve/http.h"
#include "webhook/snapshot.h"

namespace prometheus {
class Registry;
}

namespace loadline::webhook {

/// `snapshot` gives the newest snapshot; it must not block.
[[nodiscard]] std::vector<serve::Route> review_routes(std::function<std::shared_ptr<const Snapshot>()> snapshot,
                                                      prometheus::Registry& registry);

}  // namespace loadline::webhook
