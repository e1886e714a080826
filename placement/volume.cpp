#include "placement/volume.h"

#include <algorithm>

#include "placement/words.h"

namespace loadline::placement {
namespace {

constexpr const char* kShared = "ReadWriteMany";

bool lists(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Who asks for the class of a claim that is not made yet.
std::string class_source(const Request& request, const Plan& plan) {
  const auto& checkpoint = request.job.spec.checkpoint;
  const bool by_job = checkpoint && checkpoint->volume && checkpoint->volume->storageClassName;
  return by_job ? "spec.checkpoint.volume.storageClassName" : plan.policy.called();
}

}  // namespace

std::optional<Refusal> class_not_listed(const Request& request, const Plan& plan, const Pool& pool) {
  const std::string name = request.claim ? request.claim->storage_class : plan.checkpoint.storage_class.value_or("");
  if (name.empty() || pool.storage_classes.empty() || lists(pool.storage_classes, name)) return std::nullopt;
  const std::string listed = "the pool lists " + join(pool.storage_classes, ", ");
  if (!request.claim) {
    return Refusal{Reason::StorageClassNotListed,
                   class_source(request, plan) + " asks for StorageClass " + name + ", " + listed};
  }
  return Refusal{Reason::StorageClassNotListed,
                 "claim " + request.claim->name + " is in StorageClass " + name + ", " + listed +
                     "; add it to spec.storage.classes of the GPUPool if its volumes can be mounted there, or name a "
                     "claim with a copy of the checkpoints in spec.checkpoint.volume.claimName"};
}

std::optional<Refusal> not_shared(const Request& request, const Plan& plan, std::int64_t nodes) {
  const std::vector<std::string>& modes = request.claim ? request.claim->access_modes : plan.checkpoint.access_modes;
  if (nodes <= 1 || modes.empty() || lists(modes, kShared)) return std::nullopt;
  const std::string why = " is " + join(modes, ", ") + ", and " + counted(nodes, "node") + " would write to it; ";
  if (!request.claim) {
    return Refusal{Reason::VolumeNotShared,
                   "spec.checkpoint.volume.accessModes" + why + "ask for ReadWriteMany, or for GPUs of one node"};
  }
  return Refusal{Reason::VolumeNotShared, "claim " + request.claim->name + why +
                                              "copy its checkpoints to a ReadWriteMany claim and name that in "
                                              "spec.checkpoint.volume.claimName, or ask for GPUs of one node"};
}

}  // namespace loadline::placement
