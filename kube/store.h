// A copy of one resource type in memory, kept by a Reflector, read by everybody.
//
//   Store pods(resources::kPods, drop_all_but_status);
//   auto listening = pods.listen([&](const Change& c) { queue.add(owner_key(c)); });
//
// What it guarantees: a reader sees each object whole, in a version the server had. What it does not: freshness.
// After a write of one's own, tell it with expect_at_least() and ask freshness() before deciding again.
//
// Thread-safety: readers from any thread; one writer (the Reflector). Listeners run on the writer's thread, in the
// order of the changes, outside the lock: they may read the store, and must be quick. What they throw is logged.
// Ownership: objects are shared; a Subscription ends its listening when destroyed and must not outlive the store.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "kube/clock.h"
#include "kube/object.h"
#include "kube/resource.h"

namespace loadline::kube {

/// Something happened under `key`. Same key and another uid: the object was deleted and made anew.
struct Change {
  ObjectKey key;
  Object before;  ///< no object: it is new
  Object after;   ///< no object: it is gone
};

/// Ends a listener's life with its own.
class Subscription {
 public:
  Subscription() = default;
  explicit Subscription(std::function<void()> end) : end_(std::move(end)) {}
  ~Subscription() { reset(); }
  Subscription(Subscription&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  Subscription& operator=(Subscription&& other) noexcept;
  void reset();

 private:
  std::function<void()> end_;
};

/// Whether the store has caught up with our own last write of a key.
enum class Freshness {
  Current,  ///< it has, or there was none
  Behind,   ///< not yet: look again on the next change or in a moment
  Overdue,  ///< not within 10 s: read from the server instead
};

class Store {
 public:
  /// Edits an object before it is stored, to keep only what will be read. metadata.managedFields is gone by then. An
  /// object it throws at is kept as it is then: one odd object must not hide all others.
  using Projection = std::function<void(nlohmann::json& object)>;
  using Listener = std::function<void(const Change&)>;

  explicit Store(Resource resource, Projection projection = {}, std::shared_ptr<Clock> clock = system_clock());
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] const Resource& resource() const noexcept;
  /// The object, or none.
  [[nodiscard]] Object get(const ObjectKey& key) const;
  /// Lists are in the order of their keys.
  [[nodiscard]] std::vector<Object> list() const;
  [[nodiscard]] std::vector<Object> list_namespace(const std::string& ns) const;
  /// Objects with an ownerReference to `uid`, whether controlling or not.
  [[nodiscard]] std::vector<Object> list_owned_by(const std::string& uid) const;
  [[nodiscard]] std::size_t size() const;

  /// True once a complete list was taken in; stays true through later disconnections.
  [[nodiscard]] bool synced() const;
  /// Waits for synced(); false when `timeout` passed or `stop` was asked for first.
  bool wait_synced(std::chrono::milliseconds timeout, std::stop_token stop = {}) const;
  /// The newest version taken in, of any object, list or bookmark.
  [[nodiscard]] std::string resource_version() const;

  /// Calls `listener` for each change from now on; it is not told what is there already.
  [[nodiscard]] Subscription listen(Listener listener);

  /// We wrote `key` and the server answered with this resourceVersion.
  void expect_at_least(const ObjectKey& key, const std::string& resource_version);
  /// Forgets an expectation once it is met or overdue.
  [[nodiscard]] Freshness freshness(const ObjectKey& key);

  // For the writer.

  /// All there is, at `resource_version`: what is absent from `objects` is deleted. Swapped in at once.
  void replace(std::vector<Object> objects, const std::string& resource_version);
  /// One object as it is now. An older version than the stored one of the same uid is ignored.
  void put(Object object);
  /// The object is gone; `last` is its last state.
  void erase(const Object& last);
  /// A bookmark: nothing changed up to here.
  void advance(const std::string& resource_version);
  /// Applies managedFields removal and the projection.
  [[nodiscard]] Object project(nlohmann::json document) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loadline::kube
