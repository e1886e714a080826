// A stored job is not believed: the webhook may have been off, or older. What it would refuse for the spec's own
// sake is refused here too; whether a pool can hold the job is place.cpp's question.

#include "api/names.h"
#include "operator/rules.h"
#include "placement/job_check.h"

namespace loadline::controller {

bool admit(Draft& draft) {
  const std::vector<FieldError> errors = placement::check_job(draft.seen.stored.json());
  if (errors.empty()) {
    const api::Condition* admitted = find_condition(draft.status, api::condition::kAdmitted);
    if (admitted == nullptr || admitted->reason == "Invalid") {
      draft.set_true(api::condition::kAdmitted, "Valid", "the spec is complete and consistent");
      draft.status.phase = "Pending";
    }
    return true;
  }
  const std::string message = to_string(errors);
  const api::Condition* before = find_condition(draft.status, api::condition::kAdmitted);
  if (before == nullptr || before->message != cut_utf8(message, 2000)) {
    draft.tell(kube::Event::Type::Warning, "Invalid", "Admit", message);
  }
  draft.set_false(api::condition::kAdmitted, "Invalid", message);
  return false;
}

}  // namespace loadline::controller
