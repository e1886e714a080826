// Keeps a Store equal to the server: list, watch, and after any trouble whatever brings them together again.
//
//             +--stream--> Streaming --end mark--+
//             |                                  v
//   Empty ----+--pages---> Listed ----watch--> Watching --clean end--> Listed (from the last version)
//     ^                      |                   |
//     +---------410----------+--------410--------+      other errors: wait, then the same again
//
// A list comes as a stream (a watch that first tells all there is and marks the end of that) where the server has them,
// else in pages. Either way it is gathered beside the store and swapped in whole; what vanished meanwhile is deleted
// then. A server that refuses a stream, or does not mark its end, is not asked for one again; after any other failure
// of one the next list comes in pages. A watch that is silent for longer than its own time plus 10 s is given up. Waits
// grow from 0.8 s to 30 s with jitter and start small again after two good minutes; watches that end at once without an
// event count as trouble. 429 waits and does not list. docs/architecture.md has the whole table.
//
// Thread-safety: all members from any thread. One thread of its own between start() and stop().
// Ownership: Client and Store must outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "kube/client.h"
#include "kube/clock.h"
#include "kube/metrics.h"
#include "kube/store.h"

namespace loadline::kube {

struct ReflectorOptions {
  std::string ns = {};  ///< empty: all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
  bool stream_lists = true;  ///< where the server has them
  int page_size = 500;
  std::chrono::seconds min_watch{120};  ///< a watch lasts between these two, drawn at random
  std::chrono::seconds max_watch{220};  ///< below 240 s, when common load balancers drop quiet connections
  std::shared_ptr<Clock> clock = system_clock();
};

class Reflector {
 public:
  Reflector(Client& client, Store& store, ReflectorOptions options = {});
  /// stop().
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void start();
  /// Ends its thread and connection, within moments; idempotent. The store keeps what it has.
  void stop();

  [[nodiscard]] const ReflectorMetrics& metrics() const;
  /// Whether the store was whole once and the server has told of changes since the last trouble, and does not let a new
  /// watch wait: false means that what has happened lately is not known. A connection that died without a word counts
  /// as alive until its time is over.
  [[nodiscard]] bool in_touch() const;
  /// Time since the server was last heard of: a list, an event or a bookmark.
  [[nodiscard]] std::chrono::milliseconds last_event_age() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loadline::kube
