// What a command is about: the TrainingJobs of its files, and the pools, policies, nodes and pods
// to judge them by. The kind of an object says what it is; which flag named its file does not matter.
//
// Thread-safety: plain values; pure functions.
// Errors: all objects' errors at once, each as kubectl prints them, with the file's name.
#pragma once

#include <string>
#include <vector>

#include "api/gpu_pool.h"
#include "api/placement_policy.h"
#include "api/training_job.h"
#include "base/result.h"
#include "cli/manifests.h"
#include "placement/facts.h"

namespace loadline::cli {

/// A job and where it was read.
struct SourcedJob {
  std::string source;
  api::TrainingJob job;
};

struct Inputs {
  std::vector<SourcedJob> jobs;
  std::vector<api::GPUPool> pools;
  std::vector<api::PlacementPolicy> policies;
  std::vector<placement::NodeFacts> nodes;
  std::vector<placement::PodFacts> pods;
  std::vector<std::string> warnings;  ///< what is kept and not used, each with the file's name
};

/// Sorts manifests by kind and judges ours as the API server and the webhook would; kinds of others that do not matter
/// are left out. At least one TrainingJob must be there.
[[nodiscard]] Result<Inputs> inputs_from(const std::vector<Manifest>& manifests);

/// `jobs/a.yaml: TrainingJob "a" is invalid:` with one line per cause, as kubectl words it.
[[nodiscard]] std::string invalid_text(const std::string& source, const std::string& kind, const std::string& name,
                                       const Error& error);

}  // namespace loadline::cli
