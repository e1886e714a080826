// The reconciler's mind: from what is observed of a job to what is to be done, without memory, clock or I/O.
//
// Order of the actions: what a promise needs first (finalizer, checkpoint claim), then the status, which records
// the intent (an attempt and where it runs), then children under names that follow from the status, then removals,
// then events. Whatever prefix of them was carried out, the next decision goes on from what is stored:
//   - nothing of it: the same decision again;
//   - the status but not the children: the recorded attempt has no Job yet, so its children are rendered from the
//     record and created (a child that exists already is ours by its owner's uid);
//   - an attempt is ended, and counted, by the one status write that sets its cause; what is still to be removed
//     is found by looking for what the ended attempt left.
//
// Thread-safety: pure functions.
#pragma once

#include "operator/action.h"
#include "operator/observed.h"

namespace loadline::controller {

[[nodiscard]] Decision decide(const Observed& seen);

}  // namespace loadline::controller
