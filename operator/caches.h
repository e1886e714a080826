// The program's Reader: one store per resource type, kept by reflectors, plus what we wrote ourselves and the stores
// have not seen yet. So a decision never rests on an older state than our own last write.
//
// Thread-safety: all members from any thread.
// Ownership: owns stores and reflectors; the client must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kube/client.h"
#include "kube/reflector.h"
#include "kube/store.h"
#include "operator/observed.h"

namespace loadline::controller {

class Caches final : public Reader {
 public:
  explicit Caches(kube::Client& client);
  ~Caches() override;
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  /// Before start(): `listener` hears of every change, the first list included.
  void listen(const kube::Resource& resource, kube::Store::Listener listener);
  void start();
  void stop();
  /// True once every type was listed completely; nothing may be decided before.
  [[nodiscard]] bool synced() const;
  /// The types that are not, for the readiness text.
  [[nodiscard]] std::string missing() const;

  [[nodiscard]] kube::Object get(const kube::Resource& resource, const kube::ObjectKey& key) const override;
  [[nodiscard]] std::vector<kube::Object> list(const kube::Resource& resource, const std::string& ns) const override;
  [[nodiscard]] kube::Object confirm_node(const std::string& name) const override;
  [[nodiscard]] kube::Object confirm_job(const kube::ObjectKey& key) const override;
  [[nodiscard]] bool in_touch() const override;

  /// We wrote `object` and this is the server's answer.
  void wrote(const kube::Resource& resource, const kube::Object& object);
  /// Whether the store has caught up with our last write of this key.
  [[nodiscard]] kube::Freshness freshness(const kube::Resource& resource, const kube::ObjectKey& key);
  /// Changes whenever anything that cluster_facts() reads does.
  [[nodiscard]] std::string facts_version() const;

 private:
  struct Entry {
    std::unique_ptr<kube::Store> store;
    std::unique_ptr<kube::Reflector> reflector;
    std::vector<kube::Subscription> listeners;
  };
  [[nodiscard]] const Entry& entry(const kube::Resource& resource) const;
  [[nodiscard]] kube::Object newest(const kube::Object& stored, const kube::ObjectKey& key) const;

  kube::Client& client_;
  std::map<std::string, Entry> entries_;  ///< by plural; immutable after construction
  mutable std::mutex mutex_;
  mutable std::map<kube::ObjectKey, kube::Object> written_jobs_;  ///< TrainingJobs that the store is behind on
  std::uint64_t writes_ = 0;
};

}  // namespace loadline::controller
