// Events (events.k8s.io/v1) as a side effect that never holds anybody up: record() only puts them in a queue.
// Repeats of the same type, reason, action and object become one Event with a series; an object that says too much is
// cut off. What cannot be kept is dropped and counted: events are for people, truth goes in conditions.
//
// Thread-safety: all members from any thread. One thread of its own between start() and stop().
// Ownership: the Client must outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "kube/client.h"
#include "kube/clock.h"
#include "kube/metrics.h"
#include "kube/object.h"

namespace loadline::kube {

/// What an event is about.
struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  auto operator<=>(const ObjectReference&) const = default;
};

/// `resource` names apiVersion and kind, which objects from a list may lack.
[[nodiscard]] ObjectReference reference_to(const Resource& resource, const Object& object);

struct Event {
  enum class Type { Normal, Warning };
  Type type = Type::Normal;
  std::string reason = {};  ///< CamelCase, why: "GangRestarted"; at most 128 bytes
  std::string action = {};  ///< CamelCase, what was done: "CreateAttempt"; at most 128 bytes
  std::string note = {};    ///< one or two sentences; cut to 1024 bytes on a code point
};

struct EventOptions {
  std::string controller = "loadline.dev/operator";  ///< reportingController
  std::string instance = {};                         ///< reportingInstance: pod name; at most 128 bytes
  std::size_t queue_limit = 1000;
  int burst_per_object = 25;  ///< then one per `refill`; values of client-go's spam filter
  std::chrono::seconds refill{300};
  std::chrono::seconds series_window{360};    ///< a repeat within this joins the series
  std::chrono::seconds series_heartbeat{60};  ///< a growing series is written at most this often
  std::shared_ptr<Clock> clock = system_clock();
};

class EventRecorder {
 public:
  EventRecorder(Client& client, EventOptions options = {});
  /// stop().
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void start();
  /// Writes what is queued for at most `flush`, then ends the thread.
  void stop(std::chrono::milliseconds flush = std::chrono::seconds(2));

  /// Never blocks, never fails.
  void record(const ObjectReference& regarding, Event event);

  [[nodiscard]] const EventMetrics& metrics() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loadline::kube
