// Carries a decision out: one request per action, in order, stopping at the first that does not succeed. Nothing is
// remembered: the next decision starts from what the server then has.
//
// Thread-safety: one Actor may be used from several threads at once, for different jobs.
// Ownership: the client and the recorder must outlive it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kube/client.h"
#include "kube/events.h"
#include "operator/action.h"
#include "operator/observed.h"

namespace loadline::controller {

struct ActOutcome {
  enum class Kind {
    Done,
    Retry,  ///< something failed or somebody wrote first: decide again, backing off
    Wait,   ///< a name is still taken by another object: decide again in a moment
    Stop,   ///< we do not lead (any more): nothing may be written
  };
  Kind kind = Kind::Done;
  std::string problem;             ///< what went wrong, for the log
  std::optional<Refusal> refusal;  ///< a child was refused for good reason: the job must say so
};

class Actor {
 public:
  /// Told of each object the server answered a write with, so that caches know what to expect.
  using Written = std::function<void(const kube::Resource&, const kube::Object&)>;

  /// `may_write` is asked before every request: leadership can end between two of them.
  Actor(kube::Client& client, kube::EventRecorder& events, std::function<bool()> may_write, Written written);

  [[nodiscard]] ActOutcome carry_out(const std::vector<Action>& actions) const;

 private:
  [[nodiscard]] ActOutcome run(const Create& action) const;
  [[nodiscard]] ActOutcome run(const WriteStatus& action) const;
  [[nodiscard]] ActOutcome run(const MergePatch& action) const;
  [[nodiscard]] ActOutcome run(const Remove& action) const;
  [[nodiscard]] ActOutcome run(const Tell& action) const;
  [[nodiscard]] ActOutcome judge(const kube::Answer<kube::Object>& answer, const kube::Resource& resource) const;

  kube::Client& client_;
  kube::EventRecorder& events_;
  std::function<bool()> may_write_;
  Written written_;
};

}  // namespace loadline::controller
