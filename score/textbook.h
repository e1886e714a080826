// The estimate a textbook would give, as a reference for the scores: states by the book, activations of
// Korthikanti et al. (arXiv 2205.05198) and a full-size fp32 cross-entropy, all added up.
//
// Thread-safety: pure.
#pragma once

#include "estimator/layout.h"
#include "estimator/workload.h"

namespace loadline::score {

/// Bytes per card: 16 B per trained parameter (frozen ones 2 B, 0.5 B in 4 bits) over the shards;
/// per layer 34 B x tokens x hidden, or with recompute 2 B and one whole layer; 14 B x tokens x vocabulary;
/// 1 GiB. Splits by tensor and pipeline degree.
[[nodiscard]] double textbook_bytes(const estimator::Workload& workload, const estimator::Layout& layout);

}  // namespace loadline::score
