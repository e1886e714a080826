// Counts the layer keeps of itself. Plain atomics: whoever exports them (another folder) reads them when asked.
//
// Thread-safety: every field may be read and written from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace loadline::kube {

/// A number that only grows.
class Counter {
 public:
  void add(std::uint64_t by = 1) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A number that goes up and down.
class Gauge {
 public:
  void set(std::int64_t to) noexcept { value_.store(to, std::memory_order_relaxed); }
  void add(std::int64_t by) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

struct ClientMetrics {
  Counter requests;      ///< sent, retries included
  Counter failures;      ///< answers given back as errors
  Counter retries;       ///< requests sent again
  Counter throttled;     ///< requests that waited for our own token bucket
  Counter throttled_ms;  ///< milliseconds waited there
  Counter too_many;      ///< answers 429
  Gauge in_flight;       ///< requests without an answer yet, watches excluded
};

struct ReflectorMetrics {
  Counter lists;           ///< complete lists; every one after the first is a relist
  Counter streamed_lists;  ///< of them, those that came as a stream
  Counter watches;         ///< watches opened, streams included
  Counter events;          ///< ADDED, MODIFIED and DELETED taken in
  Counter bookmarks;
  Counter expired;      ///< 410, of either kind
  Counter failures;     ///< lists and watches that ended in an error
  Counter bad_lines;    ///< watch lines that could not be understood
  Gauge synced;         ///< 1 when the store is complete
  Gauge in_touch;       ///< 1 when the server tells what changes; 0 from any trouble until it does again
  Gauge last_event_ms;  ///< steady-clock milliseconds of the last line or list; age = now - this
};

struct QueueMetrics {
  Counter adds;
  Counter retries;  ///< add_rate_limited
  Gauge depth;      ///< ready and waiting for a worker; delayed keys excluded
  Gauge delayed;
  Gauge processing;
  Counter waited_us;  ///< microseconds keys waited, ready, for a worker
  Counter worked_us;  ///< microseconds between get and done
  Counter taken;      ///< keys given to workers
};

struct EventMetrics {
  Counter recorded;  ///< asked for
  Counter written;   ///< created or updated on the server
  Counter dropped;   ///< lost: queue full, over the limit, or refused by the server
};

struct LeaderMetrics {
  Gauge leading;        ///< 1 while we hold the lease
  Counter transitions;  ///< times we won or lost it
  Counter failures;     ///< attempts to get or renew that failed
};

}  // namespace loadline::kube
