#include "kube/events.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "kube/fault.h"

namespace loadline::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// Limits of events.k8s.io/v1 (k8s.io/api events/v1 types.go).
constexpr std::size_t kNoteBytes = 1024;
constexpr std::size_t kWordBytes = 128;
// A DNS subdomain is 253 at most; our suffix is a dot and 16 digits.
constexpr std::size_t kNamePrefix = 253 - 17;
// Objects whose rate is remembered, and series kept open: far more than are talked about at once.
constexpr std::size_t kRemembered = 4096;
constexpr int kTries = 3;

/// What makes two events the same. client-go leaves the note out, and so loses the second of two different notes;
/// ours are for reading.
struct SeriesKey {
  ObjectReference regarding;
  Event::Type type;
  std::string reason;
  std::string action;
  std::string note;
  auto operator<=>(const SeriesKey&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 sees a 0 in it
};

struct Series {
  ObjectKey event;  // the object on the server
  std::int64_t count = 1;
  TimePoint last_wall;
  Clock::Time last_seen;
  Clock::Time last_written;
  std::int64_t written_count = 1;
};

struct Pending {
  SeriesKey key;
  TimePoint wall;
};

std::string_view type_text(Event::Type type) { return type == Event::Type::Warning ? "Warning" : "Normal"; }

std::string unique_suffix() {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(random_unit() * 9.007199254740992e15));
  return text.data();
}

json event_object(const Pending& pending, const ObjectKey& key, const EventOptions& options) {
  const ObjectReference& about = pending.key.regarding;
  json regarding = {{"apiVersion", about.api_version}, {"kind", about.kind}, {"name", about.name}};
  if (!about.ns.empty()) regarding["namespace"] = about.ns;
  if (!about.uid.empty()) regarding["uid"] = about.uid;
  if (!about.resource_version.empty()) regarding["resourceVersion"] = about.resource_version;
  return {{"apiVersion", "events.k8s.io/v1"},
          {"kind", "Event"},
          {"metadata", {{"namespace", key.ns}, {"name", key.name}}},
          {"eventTime", rfc3339_micro(pending.wall)},
          {"type", type_text(pending.key.type)},
          {"reason", pending.key.reason},
          {"action", pending.key.action},
          {"note", pending.key.note},
          {"regarding", std::move(regarding)},
          {"reportingController", options.controller},
          {"reportingInstance", options.instance}};
}

}  // namespace

ObjectReference reference_to(const Resource& resource, const Object& object) {
  return {resource.api_version(), resource.kind, object.ns(), object.name(), object.uid(), object.resource_version()};
}

struct EventRecorder::Impl {
  Impl(Client& the_client, EventOptions the_options) : client(the_client), options(std::move(the_options)) {
    if (options.instance.empty()) options.instance = options.controller;
    options.instance = cut_utf8(options.instance, kWordBytes);
  }

  /// Whether this object may speak once more. Under `mutex`.
  bool within_rate(const ObjectReference& about) {
    if (rates.size() >= kRemembered) rates.clear();
    const double per_second = 1.0 / static_cast<double>(std::max<std::int64_t>(1, options.refill.count()));
    const std::string who = about.uid + "/" + about.kind + "/" + about.ns + "/" + about.name;
    auto [rate, fresh] =
        rates.try_emplace(who, Rate{static_cast<double>(options.burst_per_object), options.clock->now()});
    const Clock::Time now = options.clock->now();
    rate->second.left =
        std::min(static_cast<double>(options.burst_per_object),
                 rate->second.left + per_second * std::chrono::duration<double>(now - rate->second.since).count());
    rate->second.since = now;
    if (rate->second.left < 1) return false;
    rate->second.left -= 1;
    return true;
  }

  void run(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] {
      const std::lock_guard held(mutex);
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      if (queue.empty()) {
        idle.notify_all();
        options.clock->wait_until(changed, lock, options.clock->now() + options.series_heartbeat);
        lock.unlock();
        go_on([&] { write_grown_series(stop); });
        lock.lock();
        continue;
      }
      const Pending next = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      go_on([&] { take(next, stop); });
      lock.lock();
      busy = false;
    }
    metrics.dropped.add(queue.size());
    queue.clear();
  }

  /// One event may be lost to an exception (want of memory), the thread and all later ones may not.
  void go_on(const std::function<void()>& work) {
    const std::string fault = fault_of(work);
    if (fault.empty()) return;
    spdlog::error("event recorder: {}", fault);
    metrics.dropped.add();
  }

  void take(const Pending& pending, const std::stop_token& stop) {
    if (!joins_series(pending, stop)) write_first(pending, stop);
  }

  /// Whether it is a repeat, and so told by the Event that is there.
  bool joins_series(const Pending& pending, const std::stop_token& stop) {
    const Clock::Time now = options.clock->now();
    const auto known = series.find(pending.key);
    if (known == series.end() || now - known->second.last_seen >= options.series_window) return false;
    Series& same = known->second;
    ++same.count;
    same.last_wall = pending.wall;
    same.last_seen = now;
    // The first repeat shows at once, later ones with the heartbeat.
    const bool due = same.written_count == 1 || now - same.last_written >= options.series_heartbeat;
    return !due || write_series(same, stop);
  }

  void write_first(const Pending& pending, const std::stop_token& stop) {
    const Clock::Time now = options.clock->now();
    Series fresh;
    fresh.event = {pending.key.regarding.ns.empty() ? "default" : pending.key.regarding.ns,
                   pending.key.regarding.name.substr(0, kNamePrefix) + "." + unique_suffix()};
    fresh.last_wall = pending.wall;
    fresh.last_seen = now;
    fresh.last_written = now;
    const json object = event_object(pending, fresh.event, options);
    const Failure failure = attempt(stop, [&](const CallOptions& call) {
      const Answer<Object> made = client.create(resources::kEvents, object, {}, call);
      // The name is ours alone: that it exists means that an earlier try arrived.
      const bool there = made.ok() || made.error().already_exists();
      return there ? Failure() : made.error();
    });
    count(failure);
    if (failure) return;
    if (series.size() >= kRemembered) series.clear();
    series.insert_or_assign(pending.key, fresh);
  }

  /// False when the Event is gone: somebody deleted it, and a repeat is news again.
  bool write_series(Series& same, const std::stop_token& stop) {
    const json patch = {{"series", {{"count", same.count}, {"lastObservedTime", rfc3339_micro(same.last_wall)}}}};
    same.last_written = options.clock->now();
    same.written_count = same.count;
    const Failure failure = attempt(stop, [&](const CallOptions& call) {
      const Answer<Object> patched = client.merge_patch(resources::kEvents, same.event, patch, {}, call);
      return patched ? Failure() : patched.error();
    });
    if (failure && failure->not_found()) return false;
    count(failure);
    return true;
  }

  void write_grown_series(const std::stop_token& stop) {
    const Clock::Time now = options.clock->now();
    for (auto at = series.begin(); at != series.end();) {
      Series& one = at->second;
      const bool quiet = now - one.last_seen >= options.series_window;
      const bool due = one.count > one.written_count && (quiet || now - one.last_written >= options.series_heartbeat);
      const bool gone = due && !write_series(one, stop);
      at = quiet || gone ? series.erase(at) : std::next(at);
    }
  }

  using Failure = std::optional<ApiError>;

  /// Up to three tries while the failure may pass.
  Failure attempt(const std::stop_token& stop, const std::function<Failure(const CallOptions&)>& write) {
    CallOptions call;
    call.timeout = std::chrono::seconds(10);
    call.stop = stop;
    for (int i = 1;; ++i) {
      Failure failure = write(call);
      const bool again =
          failure && failure->transient && i < kTries &&
          options.clock->sleep_for(backoff(std::chrono::seconds(1), std::chrono::seconds(5), i, random_unit()), stop);
      if (!again) return failure;
    }
  }

  void count(const Failure& failure) {
    if (failure) spdlog::debug("event not written: {}", failure->message);
    (failure ? metrics.dropped : metrics.written).add();
  }

  struct Rate {
    double left;
    Clock::Time since;
  };

  Client& client;
  EventOptions options;
  EventMetrics metrics;

  std::mutex mutex;
  std::condition_variable changed;
  std::condition_variable idle;
  std::deque<Pending> queue;
  std::map<std::string, Rate> rates;
  bool busy = false;

  std::map<SeriesKey, Series> series;  // of the thread alone
  std::jthread thread;
};

EventRecorder::EventRecorder(Client& client, EventOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(options))) {}
EventRecorder::~EventRecorder() { stop(); }

void EventRecorder::start() {
  if (impl_->thread.joinable()) return;
  impl_->thread = std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->run(stop); });
}

void EventRecorder::stop(std::chrono::milliseconds flush) {
  if (!impl_->thread.joinable()) return;
  {
    std::unique_lock lock(impl_->mutex);
    impl_->changed.notify_all();
    impl_->idle.wait_for(lock, flush, [this] { return impl_->queue.empty() && !impl_->busy; });
  }
  impl_->thread.request_stop();
  impl_->thread.join();
}

void EventRecorder::record(const ObjectReference& regarding, Event event) {
  impl_->metrics.recorded.add();
  if (event.action.empty()) event.action = event.reason;
  // The version of the object is no part of what the event is about, or no two would be the same.
  ObjectReference about = regarding;
  about.resource_version.clear();
  Pending pending{{std::move(about), event.type, cut_utf8(event.reason, kWordBytes), cut_utf8(event.action, kWordBytes),
                   cut_utf8(event.note, kNoteBytes)},
                  impl_->options.clock->wall()};
  const std::lock_guard lock(impl_->mutex);
  if (impl_->queue.size() >= impl_->options.queue_limit || !impl_->within_rate(pending.key.regarding)) {
    impl_->metrics.dropped.add();
    return;
  }
  impl_->queue.push_back(std::move(pending));
  impl_->changed.notify_all();
}

const EventMetrics& EventRecorder::metrics() const { return impl_->metrics; }

}  // namespace loadline::kube
