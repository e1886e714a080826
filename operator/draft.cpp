#include "operator/draft.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "api/names.h"
#include "operator/resources.h"

namespace loadline::controller {
namespace {

constexpr std::size_t kMessageBytes = 2000;
constexpr std::size_t kLineBytes = 512;
constexpr std::size_t kStatusBytes = 32 << 10;

void bound_lines(std::vector<std::string>& lines, std::size_t most) {
  if (lines.size() > most) lines.resize(most);
  for (std::string& line : lines) line = cut_utf8(line, kLineBytes);
}

/// In the order of a job's life, whatever order they came to be in: it is how they are read.
void order_conditions(std::vector<api::Condition>& conditions) {
  namespace c = api::condition;
  static constexpr std::array kOrder = {c::kAdmitted,  c::kSized,     c::kPlaced, c::kCheckpointReady, c::kRunning,
                                        c::kSuspended, c::kSucceeded, c::kFailed, c::kFinished};
  const auto rank = [](const api::Condition& condition) {
    return std::find_if(kOrder.begin(), kOrder.end(), [&](const char* type) { return condition.type == type; });
  };
  std::stable_sort(conditions.begin(), conditions.end(),
                   [&](const api::Condition& a, const api::Condition& b) { return rank(a) < rank(b); });
}

/// JSON has no infinity; the server would refuse the whole status for one.
void drop_unless_finite(std::optional<double>& value) {
  if (value && !std::isfinite(*value)) value.reset();
}

std::size_t size_of(const api::TrainingJobStatus& status) {
  return api::to_json(status).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size();
}

}  // namespace

Draft::Draft(const Observed& observed) : seen(observed), spec(observed.job.spec), status(observed.job.status) {}

void Draft::condition(const char* type, api::ConditionStatus value, std::string_view reason, std::string_view message) {
  auto it = std::find_if(status.conditions.begin(), status.conditions.end(),
                         [&](const api::Condition& c) { return c.type == type; });
  if (it == status.conditions.end()) {
    it = status.conditions.insert(it, api::Condition{});
    it->type = type;
    it->lastTransitionTime = now_text();
  } else if (it->status != value) {
    it->lastTransitionTime = now_text();
  }
  it->status = value;
  it->reason = reason;
  it->message = cut_utf8(message, kMessageBytes);
  it->observedGeneration = seen.stored.generation();
}

void Draft::set_true(const char* type, std::string_view reason, std::string_view message) {
  condition(type, api::ConditionStatus::True, reason, message);
}

void Draft::set_false(const char* type, std::string_view reason, std::string_view message) {
  condition(type, api::ConditionStatus::False, reason, message);
}

bool Draft::is_true(const char* type) const {
  const api::Condition* found = find_condition(status, type);
  return found != nullptr && found->status == api::ConditionStatus::True;
}

void Draft::tell(kube::Event::Type type, std::string_view reason, std::string_view action, std::string_view note) {
  events_.push_back({kube::reference_to(resources::kTrainingJobs, seen.stored),
                     {type, std::string(reason), std::string(action), std::string(note)}});
}

void Draft::create(const kube::Resource& resource, nlohmann::json object) {
  after_status.emplace_back(Create{resource, std::move(object), seen.stored.uid()});
}

void Draft::remove(const kube::Resource& resource, const kube::Object& object, std::optional<int> grace_seconds) {
  after_status.emplace_back(Remove{resource, object.key(), object.uid(), grace_seconds});
}

void Draft::look_again_in(std::chrono::milliseconds delay) {
  delay = std::max(delay, std::chrono::milliseconds(100));
  if (!requeue_after_ || delay < *requeue_after_) requeue_after_ = delay;
}

void Draft::look_again_at(TimePoint time) { look_again_in(time - seen.now); }

api::AttemptStatus* Draft::newest() { return status.attempts.empty() ? nullptr : &status.attempts.back(); }

api::AttemptStatus* Draft::live() {
  api::AttemptStatus* attempt = newest();
  return attempt != nullptr && !attempt->cause ? attempt : nullptr;
}

Decision Draft::finish() {
  if (!status_left_) {
    // Every condition was looked at under this generation, also those that stayed as they were.
    const std::int64_t generation = std::max(status.observedGeneration.value_or(0), seen.stored.generation());
    status.observedGeneration = generation;
    for (api::Condition& c : status.conditions) c.observedGeneration = generation;
    order_conditions(status.conditions);
    bound(status);
  }
  Decision decision;
  decision.requeue_after = requeue_after_;
  decision.actions = std::move(before_status);
  nlohmann::json after = api::to_json(status);
  if (after != api::to_json(seen.job.status)) {
    nlohmann::json object = {{"apiVersion", api::kApiVersion},
                             {"kind", api::TrainingJob::kKind},
                             {"metadata",
                              {{"name", seen.stored.name()},
                               {"namespace", seen.stored.ns()},
                               {"uid", seen.stored.uid()},
                               {"resourceVersion", seen.stored.resource_version()}}},
                             {"status", std::move(after)}};
    decision.actions.emplace_back(WriteStatus{resources::kTrainingJobs, std::move(object)});
    decision.claims_capacity = claims_capacity;
  } else {
    events_.clear();
  }
  std::move(after_status.begin(), after_status.end(), std::back_inserter(decision.actions));
  std::move(events_.begin(), events_.end(), std::back_inserter(decision.actions));
  return decision;
}

bool is_finished(const api::TrainingJobStatus& status) {
  return std::any_of(status.conditions.begin(), status.conditions.end(), [](const api::Condition& c) {
    return c.status == api::ConditionStatus::True &&
           (c.type == api::condition::kSucceeded || c.type == api::condition::kFailed);
  });
}

const api::Condition* find_condition(const api::TrainingJobStatus& status, std::string_view type) {
  const auto it = std::find_if(status.conditions.begin(), status.conditions.end(),
                               [&](const api::Condition& c) { return c.type == type; });
  return it == status.conditions.end() ? nullptr : &*it;
}

void bound(api::TrainingJobStatus& status) {
  if (status.progress) {
    drop_unless_finite(status.progress->loss);
    drop_unless_finite(status.progress->tokens);
  }
  constexpr std::size_t kLines = 40, kOptions = 10;
  if (status.sizing) {
    bound_lines(status.sizing->explanation, kLines);
    bound_lines(status.sizing->assumptions, kLines);
  }
  if (status.placement) {
    bound_lines(status.placement->explanation, kLines);
    if (status.placement->options.size() > kOptions) status.placement->options.resize(kOptions);
    for (api::PlacementOption& option : status.placement->options) option.detail = cut_utf8(option.detail, kLineBytes);
  }
  if (status.checkpoint) bound_lines(status.checkpoint->explanation, 32);
  for (api::AttemptStatus& attempt : status.attempts) {
    if (attempt.detail) attempt.detail = cut_utf8(*attempt.detail, kLineBytes);
  }
  // What can be had elsewhere goes first: refused pools, then the end of the explanations.
  for (std::size_t keep = kOptions; keep > 0 && size_of(status) >= kStatusBytes; --keep) {
    if (status.placement) {
      status.placement->options.resize(std::min(status.placement->options.size(), keep));
      bound_lines(status.placement->explanation, keep * 2);
    }
    if (status.sizing) bound_lines(status.sizing->explanation, kLines / 2 + keep);
    for (api::Condition& c : status.conditions) c.message = cut_utf8(c.message, kLineBytes);
  }
}

}  // namespace loadline::controller
