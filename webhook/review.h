// The two webhooks: AdmissionReview in, AdmissionReview out, judged against a snapshot of the cluster.
//
// mutate fills in what follows from the object alone, and only when it is created; applied to its own output it changes
// nothing. validate reads the object strictly, sizes and plans the job, and answers with warnings that carry the sizing
// or with every cause of a refusal. On an update only what the request changes is judged. What cannot be judged (no
// pools known yet, a fault of ours) is let through with a warning: the operator judges every job again.
//
// Thread-safety: pure functions.
// Errors: Code::Invalid for what is no AdmissionReview; everything else is an answer.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "webhook/admission.h"
#include "webhook/snapshot.h"

namespace loadline::webhook {

[[nodiscard]] Verdict mutate(const Request& request);
[[nodiscard]] Verdict validate(const Request& request, const Snapshot& snapshot);

}  // namespace loadline::webhook
