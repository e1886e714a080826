#include "kube/client.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

namespace loadline::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

/// Query parameters in the order given; those without a value are left out.
std::string with_query(std::string path, std::initializer_list<std::pair<std::string_view, std::string>> parameters) {
  char separator = '?';
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    path += separator;
    path += name;
    path += '=';
    path += percent_encode(value);
    separator = '&';
  }
  return path;
}

ApiError invalid(const std::string& message) {
  ApiError error;
  error.code = Error::Code::Invalid;
  error.reason = "Invalid";
  error.message = message;
  return error;
}

Answer<Object> to_object(const Answer<Response>& answer) {
  if (!answer) return answer.error();
  Result<Object> object = Object::parse(answer->body);
  if (!object) return ApiError::transport(ApiError::kBadAnswer, "the API server's answer is " + object.error().message);
  return std::move(*object);
}

Answer<json> to_json(const Answer<Response>& answer) {
  if (!answer) return answer.error();
  Result<json> document = parse_json(answer->body, TooDeep::Prune);
  if (!document)
    return ApiError::transport(ApiError::kBadAnswer, "the API server's answer is " + document.error().message);
  return std::move(*document);
}

std::string_view propagation_text(Propagation propagation) {
  switch (propagation) {
    case Propagation::Background: return "Background";
    case Propagation::Foreground: return "Foreground";
    case Propagation::Orphan: return "Orphan";
  }
  return "Background";
}

std::string dry_run_value(bool dry_run) { return dry_run ? "All" : ""; }

/// Unique enough to find one request in the server's log and to count how often it arrived.
std::string request_id() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(generator()));
  return text.data();
}

/// Stops when either of two stop_tokens does.
class EitherStop {
 public:
  EitherStop(const std::stop_token& a, const std::stop_token& b) : on_a_(a, Ask{&both_}), on_b_(b, Ask{&both_}) {}
  [[nodiscard]] std::stop_token token() const { return both_.get_token(); }

 private:
  struct Ask {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };
  std::stop_source both_;
  std::stop_callback<Ask> on_a_;
  std::stop_callback<Ask> on_b_;
};

}  // namespace

struct Client::Impl {
  Impl(std::shared_ptr<Transport> the_transport, ClientOptions the_options)
      : transport(std::move(the_transport)),
        options(std::move(the_options)),
        bucket(options.requests_per_second, options.burst, options.clock) {}

  /// Waits for a token of the bucket; false when stopped first.
  bool wait_for_turn(const std::stop_token& stop) {
    const Clock::Duration wait = bucket.reserve();
    if (wait == Clock::Duration::zero()) return !stop.stop_requested();
    metrics.throttled.add();
    metrics.throttled_ms.add(static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(wait).count()));
    return options.clock->sleep_for(wait, stop);
  }

  /// Waits for one of the places in flight; false when stopped first.
  bool enter(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] {
      const std::lock_guard held(mutex);
      left.notify_all();
    });
    std::unique_lock lock(mutex);
    left.wait(lock, [&] { return stop.stop_requested() || in_flight < std::max(1, options.max_in_flight); });
    if (stop.stop_requested()) return false;
    ++in_flight;
    metrics.in_flight.set(in_flight);
    return true;
  }

  struct Leave {
    Impl& impl;
    ~Leave() {
      const std::lock_guard lock(impl.mutex);
      --impl.in_flight;
      impl.metrics.in_flight.set(impl.in_flight);
      impl.left.notify_one();
    }
  };

  Answer<Response> try_once(const Request& request, milliseconds timeout, const std::stop_token& stop) {
    if (!wait_for_turn(stop) || !enter(stop)) return ApiError::transport(ApiError::kCanceled, "canceled");
    const Leave leaving{*this};
    metrics.requests.add();
    Answer<Response> answer = transport->send(request, timeout, stop);
    if (!answer) return answer;
    if (answer->status == 429) metrics.too_many.add();
    if (answer->status >= 300) {
      return ApiError::from_response(answer->status, answer->body, answer->retry_after());
    }
    return answer;
  }

  Answer<Response> call(Request request, const CallOptions& call) {
    const RetryPolicy& policy = request.method == Method::Get ? options.reads : options.writes;
    const EitherStop either(call.stop, shutting_down.get_token());
    request.headers.emplace_back("User-Agent", options.user_agent);
    request.headers.emplace_back("X-Request-Id", request_id());
    const Clock::Time give_up = options.clock->now() + 2 * call.timeout;
    bool may_be_done = false;
    for (int tries = 1;; ++tries) {
      Answer<Response> answer = try_once(request, call.timeout, either.token());
      if (answer) return answer;
      ApiError error = std::move(answer).error();
      // A refusal of the second try says nothing of what became of the first.
      may_be_done = may_be_done || error.outcome_unknown;
      error.outcome_unknown = may_be_done;
      const auto wait = retry_wait(policy, error, tries, random_unit());
      if (!wait || call.once || options.clock->now() + *wait > give_up) {
        metrics.failures.add();
        return error;
      }
      metrics.retries.add();
      spdlog::debug("{} {}: {}; again in {} ms", to_string(request.method), request.target, error.message,
                    wait->count());
      if (!options.clock->sleep_for(*wait, either.token())) return ApiError::transport(ApiError::kCanceled, "canceled");
    }
  }

  Answer<Object> write(Method method, const std::string& path, const char* content_type, const json& body,
                       const WriteOptions& write_options, const CallOptions& call_options, bool force = false) {
    Request request;
    request.method = method;
    request.target = with_query(path, {{"fieldManager", options.field_manager},
                                       {"force", force ? "true" : ""},
                                       {"dryRun", dry_run_value(write_options.dry_run)}});
    request.content_type = content_type;
    request.body = json_text(body);
    return to_object(call(std::move(request), call_options));
  }

  const std::shared_ptr<Transport> transport;
  const ClientOptions options;
  TokenBucket bucket;
  ClientMetrics metrics;
  std::stop_source shutting_down;
  std::mutex mutex;
  std::condition_variable left;
  int in_flight = 0;
};

Client::Client(std::shared_ptr<Transport> transport, ClientOptions options)
    : impl_(std::make_unique<Impl>(std::move(transport), std::move(options))) {}
Client::~Client() = default;

Answer<Object> Client::get(const Resource& resource, const ObjectKey& key, const CallOptions& call) {
  Request request;
  request.target = object_path(resource, key.ns, key.name);
  return to_object(impl_->call(std::move(request), call));
}

Answer<List> Client::list_page(const Resource& resource, const ListOptions& options, const std::string& token,
                               const CallOptions& call) {
  Request request;
  // A continue token already holds the version.
  request.target =
      with_query(collection_path(resource, options.ns),
                 {{"labelSelector", options.label_selector},
                  {"fieldSelector", options.field_selector},
                  {"limit", options.page_size > 0 ? std::to_string(options.page_size) : ""},
                  {"continue", token},
                  {"resourceVersion", token.empty() ? options.resource_version : ""},
                  {"resourceVersionMatch", token.empty() && !options.resource_version.empty() ? "NotOlderThan" : ""}});
  Answer<json> document = to_json(impl_->call(std::move(request), call));
  if (!document) return document.error();
  List list;
  list.resource_version = string_at(*document, {"metadata", "resourceVersion"}).value_or("");
  list.next = string_at(*document, {"metadata", "continue"}).value_or("");
  const auto items = document->find("items");
  if (items == document->end() || !(items->is_array() || items->is_null())) {
    return ApiError::transport(ApiError::kBadAnswer, "the API server's answer is no list");
  }
  list.items.reserve(items->size());
  for (json& item : *items) {
    if (!item.is_object()) continue;
    // Items of a list carry no type of their own.
    item["apiVersion"] = resource.api_version();
    item["kind"] = resource.kind;
    list.items.emplace_back(std::move(item));
  }
  return list;
}

Answer<List> Client::list(const Resource& resource, const ListOptions& options, const CallOptions& call) {
  constexpr int kAttempts = 2;
  for (int attempt = 1;; ++attempt) {
    List all;
    std::string token;
    for (;;) {
      Answer<List> page = list_page(resource, options, token, call);
      if (!page) {
        // The token's version is gone: what was read so far is of no use for a consistent list.
        if (page.error().expired() && !token.empty() && attempt < kAttempts) break;
        return page.error();
      }
      std::move(page->items.begin(), page->items.end(), std::back_inserter(all.items));
      all.resource_version = page->resource_version;
      token = page->next;
      if (token.empty()) return all;
    }
  }
}

Answer<Object> Client::create(const Resource& resource, const json& object, const WriteOptions& options,
                              const CallOptions& call) {
  const auto name = string_at(object, {"metadata", "name"}).value_or("");
  const auto ns = string_at(object, {"metadata", "namespace"}).value_or("");
  if (name.empty())
    return invalid("create " + resource.kind + ": metadata.name is required (generateName could create twice)");
  std::string path = options.subresource.empty() ? collection_path(resource, ns)
                                                 : object_path(resource, ns, name, options.subresource);
  return impl_->write(Method::Post, path, "application/json", object, options, call);
}

Answer<Object> Client::update(const Resource& resource, const json& object, const WriteOptions& options,
                              const CallOptions& call) {
  const auto name = string_at(object, {"metadata", "name"}).value_or("");
  const auto ns = string_at(object, {"metadata", "namespace"}).value_or("");
  if (name.empty()) return invalid("update " + resource.kind + ": metadata.name is required");
  return impl_->write(Method::Put, object_path(resource, ns, name, options.subresource), "application/json", object,
                      options, call);
}

Answer<Object> Client::apply(const Resource& resource, const json& object, const WriteOptions& options,
                             const CallOptions& call) {
  const auto name = string_at(object, {"metadata", "name"}).value_or("");
  const auto ns = string_at(object, {"metadata", "namespace"}).value_or("");
  if (name.empty()) return invalid("apply " + resource.kind + ": metadata.name is required");
  json body = object;
  body["apiVersion"] = resource.api_version();
  body["kind"] = resource.kind;
  return impl_->write(Method::Patch, object_path(resource, ns, name, options.subresource),
                      "application/apply-patch+yaml", body, options, call, options.force);
}

Answer<Object> Client::merge_patch(const Resource& resource, const ObjectKey& key, const json& patch,
                                   const WriteOptions& options, const CallOptions& call) {
  return impl_->write(Method::Patch, object_path(resource, key.ns, key.name, options.subresource),
                      "application/merge-patch+json", patch, options, call);
}

Answer<Object> Client::json_patch(const Resource& resource, const ObjectKey& key, const json& operations,
                                  const WriteOptions& options, const CallOptions& call) {
  return impl_->write(Method::Patch, object_path(resource, key.ns, key.name, options.subresource),
                      "application/json-patch+json", operations, options, call);
}

Answer<Object> Client::remove(const Resource& resource, const ObjectKey& key, const DeleteOptions& options,
                              const CallOptions& call) {
  json body = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", propagation_text(options.propagation)}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) body["preconditions"]["resourceVersion"] = options.resource_version;
  if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
  if (options.dry_run) body["dryRun"] = json::array({"All"});
  Request request;
  request.method = Method::Delete;
  request.target = object_path(resource, key.ns, key.name);
  request.content_type = "application/json";
  request.body = json_text(body);
  Answer<Object> answer = to_object(impl_->call(std::move(request), call));
  if (!answer && answer.error().not_found()) return Object();
  // Gone at once: some types answer with a Status, others with the last state of the object.
  if (answer && (answer->kind() == "Status" || !answer->deleting())) return Object();
  return answer;
}

Answer<std::string> Client::pod_log(const ObjectKey& pod, const LogOptions& options, const CallOptions& call) {
  Request request;
  // limitBytes cuts the end of what tailLines chose, and the end is what matters: ask for more and cut here.
  constexpr int kLongestFetch = 4 * 1024 * 1024;
  request.target = with_query(object_path(resources::kPods, pod.ns, pod.name, "log"),
                              {{"container", options.container},
                               {"tailLines", std::to_string(options.tail_lines)},
                               {"limitBytes", std::to_string(std::max(options.limit_bytes, kLongestFetch))},
                               {"previous", options.previous ? "true" : ""}});
  request.headers.emplace_back("Accept", "text/plain, application/json");
  Answer<Response> answer = impl_->call(std::move(request), call);
  if (!answer) return answer.error();
  std::string text = std::move(answer->body);
  const auto limit = static_cast<std::size_t>(std::max(0, options.limit_bytes));
  if (text.size() > limit) {
    text.erase(0, text.size() - limit);
    if (const auto line = text.find('\n'); line != std::string::npos && line + 1 < text.size()) text.erase(0, line + 1);
  }
  return text;
}

Answer<bool> Client::serves(const std::string& api_version, const std::string& kind, const CallOptions& call) {
  Request request;
  request.target = (api_version.find('/') == std::string::npos ? "/api/" : "/apis/") + api_version;
  const Answer<json> document = to_json(impl_->call(std::move(request), call));
  if (!document) {
    if (document.error().not_found()) return false;
    return document.error();
  }
  const json& listed = array_at(*document, {"resources"});
  return std::any_of(listed.begin(), listed.end(),
                     [&](const json& entry) { return string_at(entry, {"kind"}) == kind; });
}

Answer<std::vector<std::string>> Client::group_versions(const std::string& group, const CallOptions& call) {
  Request request;
  request.target = "/apis/" + percent_encode(group);
  const Answer<json> document = to_json(impl_->call(std::move(request), call));
  std::vector<std::string> versions;
  if (!document) {
    if (document.error().not_found()) return versions;
    return document.error();
  }
  const auto preferred = string_at(*document, {"preferredVersion", "version"});
  if (preferred) versions.emplace_back(*preferred);
  for (const json& entry : array_at(*document, {"versions"})) {
    const auto version = string_at(entry, {"version"});
    if (version && version != preferred) versions.emplace_back(*version);
  }
  return versions;
}

Answer<std::string> Client::server_version(const CallOptions& call) {
  Request request;
  request.target = "/version";
  const Answer<json> document = to_json(impl_->call(std::move(request), call));
  if (!document) return document.error();
  return std::string(string_at(*document, {"gitVersion"}).value_or(""));
}

std::unique_ptr<WatchStream> Client::watch(const Resource& resource, const WatchOptions& options) {
  // Longer than the server's own timeout: silence beyond it means that the connection is dead.
  constexpr auto kSlack = std::chrono::seconds(10);
  Request request;
  request.target = with_query(collection_path(resource, options.ns),
                              {{"watch", "true"},
                               {"allowWatchBookmarks", "true"},
                               {"labelSelector", options.label_selector},
                               {"fieldSelector", options.field_selector},
                               {"resourceVersion", options.resource_version},
                               {"sendInitialEvents", options.initial_events ? "true" : ""},
                               {"resourceVersionMatch", options.initial_events ? "NotOlderThan" : ""},
                               {"timeoutSeconds", std::to_string(options.timeout.count())}});
  request.headers.emplace_back("User-Agent", impl_->options.user_agent);
  return impl_->transport->open_watch(std::move(request), options.timeout + kSlack);
}

Answer<Response> Client::call(Request request, const CallOptions& call) {
  return impl_->call(std::move(request), call);
}
const ClientMetrics& Client::metrics() const { return impl_->metrics; }
const ClientOptions& Client::options() const { return impl_->options; }
void Client::shut_down() { impl_->shutting_down.request_stop(); }

Answer<Object> retry_on_conflict(const std::function<Answer<Object>()>& attempt) {
  constexpr int kTries = 5;
  for (int tries = 1;; ++tries) {
    Answer<Object> answer = attempt();
    if (answer || !answer.error().conflict() || tries == kTries) return answer;
  }
}

}  // namespace loadline::kube
