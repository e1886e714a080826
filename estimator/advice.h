// What would make a job fit that does not: at most three changes, cheapest first, each with
// its new figure.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/estimate.h"

namespace loadline::estimator {

/// The cards a job may use, as far as memory goes.
struct Capacity {
  std::int64_t usable_bytes = 0;  ///< per GPU, after the driver's share and any margin
  std::int64_t gpus_per_node = 8;
  std::int64_t max_gpus = 0;             ///< most GPUs worth suggesting; 0: 16 times what was asked
  std::int64_t host_bytes_per_node = 0;  ///< for offload; 0 unknown (then the need is only stated)
};

/// A layout with its estimate.
struct Sized {
  Layout layout;
  Estimate estimate;
};

/// The first sensible layout that fits `usable_bytes` (least communication first), else the
/// one that needs least. Nothing when no layout satisfies the constraints.
[[nodiscard]] std::optional<Sized> best_layout(const Workload& workload, std::int64_t gpus,
                                               const LayoutConstraints& constraints, const Capacity& capacity);

struct Change {
  std::string text;             ///< "full recompute (21.3)", "not 16 GPUs (86.9) but 32 (54.0)"
  std::int64_t peak_bytes = 0;  ///< on card, with the change
  Layout layout;                ///< with the change
};

/// Up to three changes that make it fit on such cards; empty when none of those tried does.
/// More data-parallel GPUs are offered only when sharded states dominate.
[[nodiscard]] std::vector<Change> advise(const Workload& workload, const Layout& asked,
                                         const LayoutConstraints& constraints, const Capacity& capacity);

/// "Would fit: not 16 GPUs (86.9) but 32 (54.0); LoRA rank 16 on 8 (29.3)"; when nothing
/// tried fits, says so and names the term that dominates.
[[nodiscard]] std::string advice_text(const Workload& workload, const Layout& asked,
                                      const LayoutConstraints& constraints, const Capacity& capacity);

}  // namespace loadline::estimator
