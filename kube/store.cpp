#include "kube/store.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <compare>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "kube/fault.h"
#include "kube/io_thread.h"

namespace loadline::kube {
namespace {

// A watch event is usually there within milliseconds of the write; ten seconds is trouble.
constexpr auto kExpectationLifetime = std::chrono::seconds(10);

// std::shared_mutex lets readers in before a waiting writer on Linux: enough of them would keep the news out for ever.
// Not recursive, not even for readers.
class WriterFirstMutex {
 public:
  WriterFirstMutex() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~WriterFirstMutex() { pthread_rwlock_destroy(&lock_); }
  WriterFirstMutex(const WriterFirstMutex&) = delete;
  WriterFirstMutex& operator=(const WriterFirstMutex&) = delete;

  void lock() { pthread_rwlock_wrlock(&lock_); }
  void unlock() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() { pthread_rwlock_rdlock(&lock_); }
  void unlock_shared() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_{};
};

struct Expectation {
  std::string version;
  Clock::Time overdue;
};

}  // namespace

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this != &other) {
    reset();
    end_ = std::exchange(other.end_, nullptr);
  }
  return *this;
}

void Subscription::reset() {
  if (const auto end = std::exchange(end_, nullptr)) end();
}

struct Store::Impl {
  Impl(Resource the_resource, Projection the_projection, std::shared_ptr<Clock> the_clock)
      : resource(std::move(the_resource)), projection(std::move(the_projection)), clock(std::move(the_clock)) {}

  // Under `mutex`, exclusively.
  void index(const Object& object) {
    for (const OwnerReference& owner : object.owners()) by_owner[owner.uid].insert(object.key());
  }
  void unindex(const Object& object) {
    for (const OwnerReference& owner : object.owners()) {
      const auto found = by_owner.find(owner.uid);
      if (found == by_owner.end()) continue;
      found->second.erase(object.key());
      if (found->second.empty()) by_owner.erase(found);
    }
  }
  void seen(const std::string& version) {
    if (std::is_gt(compare_versions(version, newest))) newest = version;
  }

  /// One listener's fault is not the others'.
  void notify(const Change& change) {
    const std::lock_guard lock(listeners_mutex);
    for (const Listener& listener : listeners) {
      const std::string fault = fault_of([&] { listener(change); });
      if (!fault.empty())
        spdlog::error("a listener to {} failed at {}: {}", resource.plural, to_string(change.key), fault);
    }
  }

  const Resource resource;
  const Projection projection;
  const std::shared_ptr<Clock> clock;

  mutable WriterFirstMutex mutex;
  std::map<ObjectKey, Object> objects;
  std::unordered_map<std::string, std::set<ObjectKey>> by_owner;
  std::string newest;
  std::unordered_map<ObjectKey, Expectation> expectations;

  mutable std::mutex synced_mutex;
  mutable std::condition_variable_any synced_changed;
  bool synced = false;

  std::mutex listeners_mutex;  // held while they run: an ended Subscription's listener is not running any more
  std::list<Listener> listeners;
};

Store::Store(Resource resource, Projection projection, std::shared_ptr<Clock> clock)
    : impl_(std::make_unique<Impl>(std::move(resource), std::move(projection), std::move(clock))) {}
Store::~Store() = default;

const Resource& Store::resource() const noexcept { return impl_->resource; }

Object Store::get(const ObjectKey& key) const {
  const std::shared_lock lock(impl_->mutex);
  const auto found = impl_->objects.find(key);
  return found == impl_->objects.end() ? Object() : found->second;
}

std::vector<Object> Store::list() const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<Object> out;
  out.reserve(impl_->objects.size());
  for (const auto& [key, object] : impl_->objects) out.push_back(object);
  return out;
}

std::vector<Object> Store::list_namespace(const std::string& ns) const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<Object> out;
  for (auto at = impl_->objects.lower_bound({ns, ""}); at != impl_->objects.end() && at->first.ns == ns; ++at) {
    out.push_back(at->second);
  }
  return out;
}

std::vector<Object> Store::list_owned_by(const std::string& uid) const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<Object> out;
  const auto owned = impl_->by_owner.find(uid);
  if (owned == impl_->by_owner.end()) return out;
  out.reserve(owned->second.size());
  for (const ObjectKey& key : owned->second) out.push_back(impl_->objects.at(key));
  return out;
}

std::size_t Store::size() const {
  const std::shared_lock lock(impl_->mutex);
  return impl_->objects.size();
}

bool Store::synced() const {
  const std::lock_guard lock(impl_->synced_mutex);
  return impl_->synced;
}

bool Store::wait_synced(std::chrono::milliseconds timeout, std::stop_token stop) const {
  about_to_wait("waiting for a store");
  std::unique_lock lock(impl_->synced_mutex);
  return impl_->synced_changed.wait_for(lock, std::move(stop), timeout, [this] { return impl_->synced; });
}

std::string Store::resource_version() const {
  const std::shared_lock lock(impl_->mutex);
  return impl_->newest;
}

Subscription Store::listen(Listener listener) {
  const std::lock_guard lock(impl_->listeners_mutex);
  const auto place = impl_->listeners.insert(impl_->listeners.end(), std::move(listener));
  return Subscription([impl = impl_.get(), place] {
    const std::lock_guard held(impl->listeners_mutex);
    impl->listeners.erase(place);
  });
}

void Store::expect_at_least(const ObjectKey& key, const std::string& resource_version) {
  const std::unique_lock lock(impl_->mutex);
  if (std::is_gteq(compare_versions(impl_->newest, resource_version))) return;
  // Those that were met and never asked for again.
  std::erase_if(impl_->expectations,
                [&](const auto& entry) { return std::is_gteq(compare_versions(impl_->newest, entry.second.version)); });
  Expectation& expectation = impl_->expectations[key];
  if (std::is_lteq(compare_versions(resource_version, expectation.version))) return;
  expectation = {resource_version, impl_->clock->now() + kExpectationLifetime};
}

Freshness Store::freshness(const ObjectKey& key) {
  const std::unique_lock lock(impl_->mutex);
  const auto found = impl_->expectations.find(key);
  if (found == impl_->expectations.end()) return Freshness::Current;
  // Versions of one type grow over all its objects, and a watch tells them in order.
  const bool met = std::is_gteq(compare_versions(impl_->newest, found->second.version));
  if (!met && impl_->clock->now() < found->second.overdue) return Freshness::Behind;
  impl_->expectations.erase(found);
  return met ? Freshness::Current : Freshness::Overdue;
}

void Store::replace(std::vector<Object> objects, const std::string& resource_version) {
  std::map<ObjectKey, Object> fresh;
  for (Object& object : objects) {
    ObjectKey key = object.key();
    fresh.insert_or_assign(std::move(key), std::move(object));
  }
  std::vector<Change> changes;
  {
    const std::unique_lock lock(impl_->mutex);
    for (const auto& [key, before] : impl_->objects) {
      if (!fresh.contains(key)) changes.push_back({key, before, Object()});
    }
    impl_->by_owner.clear();
    for (const auto& [key, after] : fresh) {
      impl_->index(after);
      const auto known = impl_->objects.find(key);
      const Object before = known == impl_->objects.end() ? Object() : known->second;
      const bool same = before && before.uid() == after.uid() && before.resource_version() == after.resource_version();
      if (!same) changes.push_back({key, before, after});
    }
    impl_->objects = std::move(fresh);
    // Also when it is older than what was seen: the server may have been restored from a backup.
    impl_->newest = resource_version;
  }
  for (const Change& change : changes) impl_->notify(change);
  const std::lock_guard lock(impl_->synced_mutex);
  impl_->synced = true;
  impl_->synced_changed.notify_all();
}

void Store::put(Object object) {
  Change change{object.key(), Object(), object};
  {
    const std::unique_lock lock(impl_->mutex);
    impl_->seen(object.resource_version());
    Object& stored = impl_->objects[object.key()];
    const bool known = stored && stored.uid() == object.uid() &&
                       std::is_lteq(compare_versions(object.resource_version(), stored.resource_version()));
    if (known) return;
    change.before = stored;
    if (stored) impl_->unindex(stored);
    impl_->index(object);
    stored = std::move(object);
  }
  impl_->notify(change);
}

void Store::erase(const Object& last) {
  Change change{last.key(), Object(), Object()};
  {
    const std::unique_lock lock(impl_->mutex);
    impl_->seen(last.resource_version());
    const auto found = impl_->objects.find(last.key());
    if (found == impl_->objects.end()) return;
    // A namesake made since is not the one that is gone.
    if (!last.uid().empty() && found->second.uid() != last.uid()) return;
    change.before = found->second;
    impl_->unindex(found->second);
    impl_->objects.erase(found);
  }
  impl_->notify(change);
}

void Store::advance(const std::string& resource_version) {
  const std::unique_lock lock(impl_->mutex);
  impl_->seen(resource_version);
}

Object Store::project(nlohmann::json document) const {
  if (const auto metadata = document.find("metadata"); metadata != document.end() && metadata->is_object()) {
    metadata->erase("managedFields");
  }
  if (impl_->projection) {
    const std::string fault = fault_of([&] { impl_->projection(document); });
    if (!fault.empty()) spdlog::error("an object of {} is kept whole: {}", impl_->resource.plural, fault);
  }
  return Object(std::move(document));
}

}  // namespace loadline::kube
