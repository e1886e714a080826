// The parts of a Hugging Face config.json that only some models have: recurrent layers, an
// encoder before the decoder, a tower and its projector.
//
// Thread-safety: pure functions. Errors: collected by the HfConfig they read.
#pragma once

#include "estimator/hf_config.h"
#include "estimator/tables.h"

namespace loadline::estimator {

/// Fills m.recurrence, and how many layers have no attention or no MLP; layers and hidden are read before.
void read_recurrence(const HfConfig& in, const FamilyRow& family, Model& m);

/// The encoder that `decoder`'s cross attention reads.
[[nodiscard]] Stack read_encoder(const HfConfig& in, const FamilyRow& family, const Model& decoder);

/// A vision tower. `otherwise` holds sizes for keys that are not there; null: they are required.
[[nodiscard]] Stack read_tower(const HfConfig& in, const FamilyRow& family, const Model* otherwise);

/// Adds the projector to the last of m.stacks.
void add_projector(const HfConfig& in, const HfConfig& vision, const Projector& projector, Model& m);

}  // namespace loadline::estimator
