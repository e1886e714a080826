// Which spec an attempt was made from, in a word that its record has room for.
//
// Thread-safety: pure function. Errors: none.
#pragma once

#include <string>

#include "kube/object.h"

namespace loadline::controller {

/// 16 hex digits over the stored spec, the same on every machine and in every version. Fields that may change while
/// the job runs (see the rules of spec in crds/loadline.dev_trainingjobs.yaml) are left out.
[[nodiscard]] std::string spec_hash(const kube::Object& stored);

}  // namespace loadline::controller
