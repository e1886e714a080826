// What a Lease says and who may take it: pure functions under the LeaderElector.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "kube/clock.h"
#include "kube/object.h"

namespace loadline::kube {

struct LeaseRecord {
  std::string holder = {};  ///< empty: free
  int duration_seconds = 0;
  std::optional<TimePoint> acquire_time = {};
  std::optional<TimePoint> renew_time = {};
  std::int64_t transitions = 0;
  std::string resource_version = {};  ///< of the object read; writes are conditional on it
  bool operator==(const LeaseRecord&) const = default;
};

/// A record and when, by our own steady clock, we first saw it as it is.
struct LeaseObservation {
  LeaseRecord record;
  Clock::Time seen_at{};
};

[[nodiscard]] LeaseRecord read_lease(const Object& lease);
/// Whether both say the same, in whatever version of the object.
[[nodiscard]] bool say_the_same(const LeaseRecord& a, const LeaseRecord& b);
/// The Lease to write; carries resourceVersion when the record has one.
[[nodiscard]] nlohmann::json lease_object(const ObjectKey& key, const LeaseRecord& record);

/// Whether `identity` may write itself in: it is free, ours, or has not changed for its whole duration while we
/// watched. The times inside the record are never compared with our clock. A record without a duration is given
/// `fallback`.
[[nodiscard]] bool may_take(const LeaseObservation& seen, const std::string& identity, Clock::Time now,
                            std::chrono::milliseconds fallback);
/// `over` with `identity` as its holder now: a renewal keeps acquireTime, a change of holder counts as a transition.
[[nodiscard]] LeaseRecord next_record(const LeaseRecord& over, const std::string& identity,
                                      std::chrono::milliseconds duration, TimePoint wall);

}  // namespace loadline::kube
