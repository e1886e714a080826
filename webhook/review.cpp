#include "webhook/review.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/names.h"
#include "webhook/defaults.h"
#include "webhook/kinds.h"

namespace loadline::webhook {
namespace {

/// Whether there is anything for us to say: our kinds, the object itself, written and not removed.
bool concerns_us(const Request& request) {
  return request.group == api::kGroup && request.subresource.empty() && request.object != nullptr &&
         (request.operation == Operation::Create ||
          (request.operation == Operation::Update && request.old_object != nullptr));
}

Verdict judge(const Request& request, const Snapshot& snapshot) {
  if (request.kind == api::TrainingJob::kKind) return validate_job(request, snapshot);
  if (request.kind == api::GPUPool::kKind) return validate_pool(request, snapshot);
  if (request.kind == api::PlacementPolicy::kKind) return validate_policy(request, snapshot);
  return {};
}

Verdict not_judged(std::string_view why) {
  Verdict verdict;
  verdict.warnings.push_back("Loadline could not check this object (" + std::string(why) +
                             "); it is let through and checked again before anything is started");
  return verdict;
}

}  // namespace

Verdict mutate(const Request& request) {
  if (!concerns_us(request) || request.deleting() || request.kind != api::TrainingJob::kKind) return {};
  Verdict verdict;
  verdict.patch = computed_defaults(*request.object, request.old_object);
  return verdict;
}

Verdict validate(const Request& request, const Snapshot& snapshot) {
  if (!concerns_us(request)) return {};
  try {
    return judge(request, snapshot);
  } catch (const std::exception& fault) {
    return not_judged(fault.what());
  }
}

}  // namespace loadline::webhook
