#include "kube/lease.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace loadline::kube {

LeaseRecord read_lease(const Object& lease) {
  const nlohmann::json& document = lease.json();
  LeaseRecord record;
  record.holder = string_at(document, {"spec", "holderIdentity"}).value_or("");
  const auto seconds = int_at(document, {"spec", "leaseDurationSeconds"}).value_or(0);
  record.duration_seconds = static_cast<int>(std::clamp<std::int64_t>(seconds, 0, 86400));
  record.acquire_time = time_at(document, {"spec", "acquireTime"});
  record.renew_time = time_at(document, {"spec", "renewTime"});
  record.transitions = int_at(document, {"spec", "leaseTransitions"}).value_or(0);
  record.resource_version = lease.resource_version();
  return record;
}

bool say_the_same(const LeaseRecord& a, const LeaseRecord& b) {
  LeaseRecord same_version = b;
  same_version.resource_version = a.resource_version;
  return a == same_version;
}

nlohmann::json lease_object(const ObjectKey& key, const LeaseRecord& record) {
  nlohmann::json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                          {"kind", "Lease"},
                          {"metadata", {{"namespace", key.ns}, {"name", key.name}}},
                          {"spec",
                           {{"holderIdentity", record.holder},
                            {"leaseDurationSeconds", record.duration_seconds},
                            {"leaseTransitions", record.transitions}}}};
  if (!record.resource_version.empty()) lease["metadata"]["resourceVersion"] = record.resource_version;
  if (record.acquire_time) lease["spec"]["acquireTime"] = rfc3339_micro(*record.acquire_time);
  if (record.renew_time) lease["spec"]["renewTime"] = rfc3339_micro(*record.renew_time);
  return lease;
}

bool may_take(const LeaseObservation& seen, const std::string& identity, Clock::Time now,
              std::chrono::milliseconds fallback) {
  if (seen.record.holder.empty() || seen.record.holder == identity) return true;
  const std::chrono::milliseconds duration =
      seen.record.duration_seconds > 0 ? std::chrono::seconds(seen.record.duration_seconds) : fallback;
  return now >= seen.seen_at + duration;
}

LeaseRecord next_record(const LeaseRecord& over, const std::string& identity, std::chrono::milliseconds duration,
                        TimePoint wall) {
  LeaseRecord next = over;
  next.duration_seconds = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(duration).count());
  next.renew_time = wall;
  if (over.holder == identity) return next;
  next.holder = identity;
  next.acquire_time = wall;
  // The first holder of a new lease is no transition.
  if (!over.resource_version.empty()) ++next.transitions;
  return next;
}

}  // namespace loadline::kube
