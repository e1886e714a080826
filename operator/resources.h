// Loadline's own three kinds as resource types.
#pragma once

#include "api/names.h"
#include "kube/resource.h"

namespace loadline::controller::resources {

inline const kube::Resource kTrainingJobs{api::kGroup, api::kVersion, "trainingjobs", "TrainingJob", true};
inline const kube::Resource kPlacementPolicies{api::kGroup, api::kVersion, "placementpolicies", "PlacementPolicy",
                                               false};
inline const kube::Resource kGPUPools{api::kGroup, api::kVersion, "gpupools", "GPUPool", false};

}  // namespace loadline::controller::resources
