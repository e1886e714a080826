#include "score/textbook.h"

#include "base/text.h"
#include "estimator/quantities.h"

namespace loadline::score {

using estimator::Sharding;

double textbook_bytes(const estimator::Workload& w, const estimator::Layout& l) {
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  const double model_ranks = d(l.tensor * l.pipeline);
  // The textbook shards experts and all else alike.
  const double shards = d(l.shards() * estimator::dense_copies(w, l));
  const double weight_shards = l.sharding == Sharding::Zero3 ? shards : 1;
  const double gradient_shards = l.sharding >= Sharding::Zero2 ? shards : 1;
  const double state_shards = l.sharding >= Sharding::Zero1 ? shards : 1;
  const double frozen = estimator::has_adapters(w) ? w.parameters.total : 0;
  const double frozen_bytes = w.method == estimator::Method::QLora ? 0.5 : 2;
  const double states =
      frozen * frozen_bytes / weight_shards + w.trained * (2 / weight_shards + 2 / gradient_shards + 12 / state_shards);

  const double tokens = d(l.micro_batch) * d(w.sequence) / d(l.context);
  const double token_layer = tokens * d(w.model.hidden) / d(l.tensor);
  const double layers = d(w.model.layers);
  const double activations =
      l.recompute == estimator::Recompute::None ? 34 * token_layer * layers : token_layer * (2 * layers + 34);
  const double loss = 14 * tokens * d(w.model.vocab) / d(l.tensor);
  return states / model_ranks + activations + loss + d(kGiB);
}

}  // namespace loadline::score
