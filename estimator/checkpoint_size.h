// Bytes of a complete training checkpoint, and of the volume that keeps several.
//
// Thread-safety: pure functions; results clamp to int64.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/workload.h"

namespace loadline::estimator {

/// Everything needed to resume: not just the weights. With adapters only they are written;
/// the frozen base is read from where it came.
struct CheckpointSize {
  std::int64_t weights_bytes = 0;
  std::int64_t master_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  std::int64_t total_bytes = 0;
  std::string parts;  ///< "bf16 weights 15.0, fp32 master and Adam moments 89.7"
};

[[nodiscard]] CheckpointSize checkpoint_size(const Workload& workload);

/// Volume for `keep_last` (>= 1) complete checkpoints, one being written, and 10 %.
[[nodiscard]] std::int64_t checkpoint_volume_bytes(const CheckpointSize& size, std::int64_t keep_last);

/// "345 GiB = 3 copies x 104.7 GiB (bf16 weights 15.0, fp32 master and Adam moments 89.7) + 10 %".
[[nodiscard]] std::string checkpoint_volume_text(const CheckpointSize& size, std::int64_t keep_last);

}  // namespace loadline::estimator
