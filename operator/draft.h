// A decision being made: the status as it should become and what else is to be done. Internal to operator/decide.
// Each file of rules edits a Draft; finish() turns it into the ordered list of actions.
//
// Thread-safety: used by one thread. Ownership: refers to the Observed it was made from.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "api/training_job_status.h"
#include "operator/action.h"
#include "operator/observed.h"

namespace loadline::controller {

class Draft {
 public:
  explicit Draft(const Observed& observed);

  const Observed& seen;
  const api::TrainingJobSpec& spec;
  api::TrainingJobStatus status;      ///< as it should become
  std::vector<Action> before_status;  ///< what must exist before the status may promise anything
  std::vector<Action> after_status;   ///< children, removals
  bool claims_capacity = false;

  /// metav1 rules: lastTransitionTime moves only with the status.
  void condition(const char* type, api::ConditionStatus value, std::string_view reason, std::string_view message);
  void set_true(const char* type, std::string_view reason, std::string_view message);
  void set_false(const char* type, std::string_view reason, std::string_view message);
  [[nodiscard]] bool is_true(const char* type) const;

  /// Events are told only when the status changes, so that a settled job stays silent.
  void tell(kube::Event::Type type, std::string_view reason, std::string_view action, std::string_view note);
  void create(const kube::Resource& resource, nlohmann::json object);
  void remove(const kube::Resource& resource, const kube::Object& object, std::optional<int> grace_seconds = {});
  /// The earliest wish counts.
  void look_again_in(std::chrono::milliseconds delay);
  void look_again_at(TimePoint time);

  /// Gives up every change to the status: the next decision will make it.
  void leave_status() {
    status = seen.job.status;
    status_left_ = true;
  }

  /// The newest attempt, live or ended; null before the first.
  [[nodiscard]] api::AttemptStatus* newest();
  /// The newest attempt when it has not ended.
  [[nodiscard]] api::AttemptStatus* live();
  [[nodiscard]] std::string now_text() const { return rfc3339(seen.now); }

  /// The status write (only when something changed) between what must come before and after it.
  [[nodiscard]] Decision finish();

 private:
  std::vector<Tell> events_;
  bool status_left_ = false;
  std::optional<std::chrono::milliseconds> requeue_after_;
};

/// Whether the job has come to its end: Succeeded or Failed is True. Sticky.
[[nodiscard]] bool is_finished(const api::TrainingJobStatus& status);
[[nodiscard]] const api::Condition* find_condition(const api::TrainingJobStatus& status, std::string_view type);

/// Keeps a status below 32 KiB whatever went into it: texts are cut, then lists shortened.
void bound(api::TrainingJobStatus& status);

}  // namespace loadline::controller
