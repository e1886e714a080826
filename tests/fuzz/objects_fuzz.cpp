// Any JSON an API server or a person may send: the three kinds, nodes and pods. What parses must be sized without
// a crash, and must read back as what was written.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "estimator/workload.h"
#include "kube/json_read.h"
#include "placement/facts.h"
#include "placement/inventory.h"
#include "placement/policy.h"

using namespace loadline;  // NOLINT(google-build-using-namespace)

namespace {

void try_training_job(const nlohmann::json& object) {
  const auto job = api::parse_training_job(object, api::UnknownFields::Ignore);
  if (!job) return;
  (void)estimator::workload_from(job->spec);
  const auto again = api::parse_training_job(api::to_json(*job), api::UnknownFields::Reject);
  if (!again || !(*again == *job)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto document = kube::parse_json({reinterpret_cast<const char*>(data), size});
  if (!document) return 0;
  const nlohmann::json& object = *document;
  try_training_job(object);
  if (const auto pool = api::parse_gpu_pool(object, api::UnknownFields::Ignore)) (void)placement::check_pool(*pool);
  if (const auto policy = api::parse_placement_policy(object, api::UnknownFields::Ignore)) {
    (void)placement::check_policy(*policy);
  }
  (void)placement::node_facts(object);
  (void)placement::pod_facts(object);
  return 0;
}
