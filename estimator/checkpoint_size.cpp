#include "estimator/checkpoint_size.h"

#include <cmath>
#include <vector>

#include "base/saturating.h"
#include "base/text.h"
#include "estimator/quantities.h"

namespace loadline::estimator {
namespace {

/// Copies on the volume: those kept, and the one being written before the oldest may go.
std::int64_t copies(std::int64_t keep_last) { return keep_last < 1 ? 2 : sat_add(keep_last, 1); }

std::string width_name(double bytes, api::Precision precision) {
  if (bytes >= 4) return "fp32";
  return precision == api::Precision::Fp16Mixed ? "fp16" : "bf16";
}

}  // namespace

CheckpointSize checkpoint_size(const Workload& w) {
  const StateBytes& b = w.recipe.states[static_cast<std::size_t>(w.precision)];
  const OptimizerRow& o = w.optimizer;
  const bool adapters = has_adapters(w);
  const double weight = adapters ? w.recipe.adapter_bytes : b.weights;
  const double moment = adapters ? w.recipe.adapter_bytes : b.moment;
  const double weights = weight * (adapters ? w.adapters : w.parameters.total);
  const double master = adapters ? 0 : b.master * w.trained;
  const double vectors = w.trained_vectors;
  const double optimizer = (w.trained - vectors) * (o.moments * moment + o.fixed_bytes) +
                           vectors * (o.vector_moments * moment + o.vector_fixed);
  CheckpointSize size;
  size.weights_bytes = sat_from_double(weights);
  size.master_bytes = sat_from_double(master);
  size.optimizer_bytes = sat_from_double(optimizer);
  size.total_bytes = sat_from_double(weights + master + optimizer);

  const int decimals = size.total_bytes < 10 * kGiB ? 2 : 1;
  const std::string what = adapters ? " adapters " : " weights ";
  size.parts = width_name(weight, w.precision) + what + gib_number(size.weights_bytes, decimals);
  std::string states;
  if (master > 0) states = "fp32 master";
  if (optimizer > 0) states += (states.empty() ? "" : " and ") + o.label + " states";
  if (!states.empty()) {
    size.parts += ", " + states + " " + gib_number(sat_add(size.master_bytes, size.optimizer_bytes), decimals);
  }
  return size;
}

std::int64_t checkpoint_volume_bytes(const CheckpointSize& size, std::int64_t keep_last) {
  const double bytes = static_cast<double>(size.total_bytes) * static_cast<double>(copies(keep_last)) * 1.1;
  const double whole_gib = std::ceil(bytes / static_cast<double>(kGiB));
  // A volume below 1 GiB is refused by most storage classes.
  return sat_from_double(std::max(1.0, whole_gib) * static_cast<double>(kGiB));
}

std::string checkpoint_volume_text(const CheckpointSize& size, std::int64_t keep_last) {
  const int decimals = size.total_bytes < 10 * kGiB ? 2 : 1;
  return gib(checkpoint_volume_bytes(size, keep_last), 0) + " = " + std::to_string(copies(keep_last)) + " copies x " +
         gib(size.total_bytes, decimals) + " (" + size.parts + ") + 10 %, in whole GiB";
}

}  // namespace loadline::estimator
