// Requests to the API server as typed calls: paths, content types, paging, retries and rate limits are here and
// nowhere else.
//
//   auto transport = make_cpprest_transport(*load_config());
//   Client client(*transport, {.field_manager = "loadline-operator"});
//   Answer<Object> node = client.get(resources::kNodes, {"", "gpu-0"});
//
// Retries: reads after connection errors, 429 and 5xx with jittered back-off; writes only after 429, and after 5xx
// when the server names a Retry-After. Any other lost write is given back with outcome_unknown: read, then decide.
// The connection may carry a create twice (see docs/decisions.md), so names are always set by the caller
// (generateName is refused) and a second create shows as AlreadyExists: check the uid of its owner, then accept.
//
// Thread-safety: all members may be called from any thread; each blocks its caller. Never call from an I/O thread.
// Ownership: shares the transport.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "kube/clock.h"
#include "kube/error.h"
#include "kube/metrics.h"
#include "kube/object.h"
#include "kube/resource.h"
#include "kube/retry.h"
#include "kube/transport.h"

namespace loadline::kube {

struct ClientOptions {
  std::string field_manager = "loadline";  ///< owner of what we apply and write; one per program, never changed
  std::string user_agent = "loadline";
  double requests_per_second = 50;  ///< token bucket, all requests together; 0: no limit
  int burst = 100;
  int max_in_flight = 16;  ///< watches excluded
  RetryPolicy reads = kReadRetries;
  RetryPolicy writes = kWriteRetries;
  std::shared_ptr<Clock> clock = system_clock();
};

/// For one call. `timeout` is for each try; the tries together take at most twice that, Retry-After waits included.
struct CallOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::stop_token stop = {};
  bool once = false;  ///< no second try, for what is asked again anyway
};

struct ListOptions {
  std::string ns = {};  ///< empty: all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
  int page_size = 500;
  std::string resource_version = {};  ///< empty: the newest
};

/// One page, or all of them.
struct List {
  std::vector<Object> items;
  std::string resource_version;  ///< of the list as a whole: watch from here
  std::string next;              ///< continue token; empty on the last page
};

struct WriteOptions {
  std::string subresource = {};  ///< "status" to write that alone
  bool dry_run = false;          ///< admission and validation run, nothing is stored
  bool force = true;             ///< apply only: take over fields that others own
};

enum class Propagation { Background, Foreground, Orphan };

struct DeleteOptions {
  std::string uid = {};               ///< when set, an object re-created under the name is not deleted (409)
  std::string resource_version = {};  ///< when set, an object changed since is not deleted (409)
  Propagation propagation = Propagation::Background;
  std::optional<int> grace_seconds = {};
  bool dry_run = false;
};

struct LogOptions {
  std::string container = {};  ///< empty: the only one
  int tail_lines = 50;
  int limit_bytes = 64 * 1024;
  bool previous = false;  ///< of the container's last run
};

struct WatchOptions {
  std::string ns = {};
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};  ///< where to go on from
  bool initial_events = false;        ///< first all there is, then a bookmark that marks its end: a streaming list
  std::chrono::seconds timeout{180};  ///< the server ends the watch after this; we give up 10 s later
};

class Client {
 public:
  Client(std::shared_ptr<Transport> transport, ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] Answer<Object> get(const Resource& resource, const ObjectKey& key, const CallOptions& call = {});
  /// All pages as one consistent list. A token that expires on the way makes it start again, once.
  [[nodiscard]] Answer<List> list(const Resource& resource, const ListOptions& options = {},
                                  const CallOptions& call = {});
  /// One page; `token` is List::next of the page before.
  [[nodiscard]] Answer<List> list_page(const Resource& resource, const ListOptions& options, const std::string& token,
                                       const CallOptions& call = {});

  /// Creates `object` under its metadata.namespace and name. A name that is taken: Code::Conflict, already_exists().
  [[nodiscard]] Answer<Object> create(const Resource& resource, const nlohmann::json& object,
                                      const WriteOptions& options = {}, const CallOptions& call = {});
  /// Replaces the object; metadata.resourceVersion makes it conditional (Code::Conflict when it changed since).
  [[nodiscard]] Answer<Object> update(const Resource& resource, const nlohmann::json& object,
                                      const WriteOptions& options = {}, const CallOptions& call = {});
  /// Server-side apply of the fields we own, all of them each time: one left out is given up.
  /// metadata.resourceVersion makes it conditional. apiVersion and kind are filled in.
  [[nodiscard]] Answer<Object> apply(const Resource& resource, const nlohmann::json& object,
                                     const WriteOptions& options = {}, const CallOptions& call = {});
  /// RFC 7396. metadata.resourceVersion in `patch` makes it conditional.
  [[nodiscard]] Answer<Object> merge_patch(const Resource& resource, const ObjectKey& key, const nlohmann::json& patch,
                                           const WriteOptions& options = {}, const CallOptions& call = {});
  /// RFC 6902. A failing `test` gives 422 (Code::Invalid).
  [[nodiscard]] Answer<Object> json_patch(const Resource& resource, const ObjectKey& key,
                                          const nlohmann::json& operations, const WriteOptions& options = {},
                                          const CallOptions& call = {});
  /// Asks for deletion. An object that is not there counts as deleted. Gives what the server said of the
  /// object: set and deleting() while finalizers or a grace period hold it, no object once it is gone.
  [[nodiscard]] Answer<Object> remove(const Resource& resource, const ObjectKey& key, const DeleteOptions& options = {},
                                      const CallOptions& call = {});

  /// The end of a container's log; not valid UTF-8 for sure. Cut in front, on a line where possible.
  [[nodiscard]] Answer<std::string> pod_log(const ObjectKey& pod, const LogOptions& options = {},
                                            const CallOptions& call = {});

  /// Whether the server has `kind` in `api_version` ("scheduling.k8s.io/v1alpha2", "v1").
  [[nodiscard]] Answer<bool> serves(const std::string& api_version, const std::string& kind,
                                    const CallOptions& call = {});
  /// The versions of a group the server has, its preferred one first; empty for an unknown group.
  [[nodiscard]] Answer<std::vector<std::string>> group_versions(const std::string& group, const CallOptions& call = {});
  /// The server's gitVersion: "v1.36.3".
  [[nodiscard]] Answer<std::string> server_version(const CallOptions& call = {});

  /// Opens a watch with bookmarks. Not retried, not counted as in flight.
  [[nodiscard]] std::unique_ptr<WatchStream> watch(const Resource& resource, const WatchOptions& options);

  /// A request of the caller's own making, under the same limits and retries: reviews, odd subresources.
  [[nodiscard]] Answer<Response> call(Request request, const CallOptions& call = {});

  [[nodiscard]] const ClientMetrics& metrics() const;
  [[nodiscard]] const ClientOptions& options() const;
  /// Ends all requests on their way and refuses new ones (reason Canceled). For the end of the process.
  void shut_down();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs `attempt` until it gives something else than a version conflict, at most five times. `attempt` must read
/// the object anew from the server each time, not from a cache.
[[nodiscard]] Answer<Object> retry_on_conflict(const std::function<Answer<Object>()>& attempt);

}  // namespace loadline::kube
