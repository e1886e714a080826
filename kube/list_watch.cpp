#include "kube/list_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace loadline::kube {
namespace {

using std::chrono::milliseconds;

// The waits of client-go's reflector (tools/cache/reflector.go).
constexpr auto kFirstWait = milliseconds(800);
constexpr auto kLongestWait = std::chrono::seconds(30);
constexpr auto kHealthyAgain = std::chrono::minutes(2);
// A watch that ends sooner without a word did not work, though the server says nothing against it.
constexpr auto kAtOnce = std::chrono::seconds(1);
// After so many of them the version itself is suspect: list anew.
constexpr int kEmptyEndsBeforeList = 5;
// The transport gives up a silent connection before this; it is for a connection that trickles for ever.
constexpr auto kOverrun = std::chrono::seconds(30);

// How long one step waits for a line; cancel() does not wait for it.
constexpr auto kReadWait = std::chrono::seconds(5);

}  // namespace

ListWatch::ListWatch(Client& client, Store& store, const ReflectorOptions& options, ReflectorMetrics& metrics)
    : client_(client), store_(store), options_(options), metrics_(metrics), last_trouble_(options_.clock->now()) {}

milliseconds ListWatch::step(const std::stop_token& stop) {
  switch (state_) {
    case State::Empty: return list(stop);
    case State::Listed: return open(stop);
    case State::Watching: return take_in();
  }
  return kLongestWait;
}

void ListWatch::cancel() {
  const std::lock_guard lock(mutex_);
  if (stream_) stream_->cancel();
}

void ListWatch::heard() {
  metrics_.last_event_ms.set(
      std::chrono::duration_cast<milliseconds>(options_.clock->now().time_since_epoch()).count());
}

void ListWatch::close_watch() {
  const std::lock_guard lock(mutex_);
  stream_.reset();
}

milliseconds ListWatch::trouble(const ApiError& error, State next) {
  close_watch();
  state_ = next;
  if (error.canceled()) return milliseconds::zero();
  if (error.expired()) metrics_.expired.add();
  metrics_.failures.add();
  const Clock::Time now = options_.clock->now();
  if (now - last_trouble_ > kHealthyAgain) troubles_ = 0;
  last_trouble_ = now;
  milliseconds wait = backoff(kFirstWait, kLongestWait, troubles_++, random_unit());
  if (error.retry_after) wait = std::max<milliseconds>(wait, *error.retry_after);
  const auto level = troubles_ == 1 ? spdlog::level::info : spdlog::level::warn;
  spdlog::log(level, "{}: {}; {} again in {} ms", store_.resource().plural, error.message,
              next == State::Empty ? "listing" : "watching", wait.count());
  return wait;
}

milliseconds ListWatch::list(const std::stop_token& stop) {
  ListOptions page_options;
  page_options.ns = options_.ns;
  page_options.label_selector = options_.label_selector;
  page_options.field_selector = options_.field_selector;
  page_options.page_size = options_.page_size;
  CallOptions call;
  call.stop = stop;
  std::vector<Object> objects;
  std::string token;
  do {
    // No resourceVersion: the newest there is. An expired one must not come back, and an old cache neither.
    Answer<List> page = client_.list_page(store_.resource(), page_options, token, call);
    if (!page) return trouble(page.error(), State::Empty);
    for (Object& item : page->items) objects.push_back(store_.project(item.json()));
    token = page->next;
    version_ = page->resource_version;
  } while (!token.empty());
  store_.replace(std::move(objects), version_);
  metrics_.lists.add();
  metrics_.synced.set(1);
  heard();
  state_ = State::Listed;
  return milliseconds::zero();
}

milliseconds ListWatch::open(const std::stop_token& stop) {
  const double spread = static_cast<double>((options_.max_watch - options_.min_watch).count()) * random_unit();
  watch_time_ = options_.min_watch + std::chrono::seconds(static_cast<std::int64_t>(spread));
  WatchOptions watch;
  watch.ns = options_.ns;
  watch.label_selector = options_.label_selector;
  watch.field_selector = options_.field_selector;
  watch.resource_version = version_;
  watch.timeout = watch_time_;
  std::shared_ptr<WatchStream> stream = client_.watch(store_.resource(), watch);
  const std::lock_guard lock(mutex_);
  stream_ = std::move(stream);
  if (stop.stop_requested()) stream_->cancel();  // cancel() may have come before there was anything to cancel
  metrics_.watches.add();
  opened_at_ = options_.clock->now();
  heard_on_watch_ = false;
  state_ = State::Watching;
  return milliseconds::zero();
}

milliseconds ListWatch::take_in() {
  const WatchRead read = stream_->read(kReadWait);
  switch (read.kind) {
    case WatchRead::Kind::Line: return handle_line(read.line);
    case WatchRead::Kind::End: return handle_end();
    case WatchRead::Kind::Failed:
      // 429 and everything else: the version is still good, so watch again and do not load the server with a list.
      return trouble(read.error, read.error.expired() || read.error.not_found() ? State::Empty : State::Listed);
    case WatchRead::Kind::Timeout: break;
  }
  if (options_.clock->now() - opened_at_ > watch_time_ + kOverrun) {
    return trouble(ApiError::transport(ApiError::kTimeout, "the watch outlived its time"), State::Listed);
  }
  return milliseconds::zero();
}

milliseconds ListWatch::handle_line(const std::string& line) {
  heard();
  heard_on_watch_ = true;
  empty_ends_ = 0;
  Result<nlohmann::json> event = parse_json(line, TooDeep::Prune);
  const std::string type = event ? std::string(string_at(*event, {"type"}).value_or("")) : "";
  const nlohmann::json* object = event ? json_at(*event, {"object"}) : nullptr;
  if (type == "ERROR" && object != nullptr) {
    const auto code = static_cast<int>(std::clamp<std::int64_t>(int_at(*object, {"code"}).value_or(500), 400, 599));
    const ApiError error = ApiError::from_response(code, json_text(*object));
    return trouble(error, error.expired() ? State::Empty : State::Listed);
  }
  const bool known = type == "ADDED" || type == "MODIFIED" || type == "DELETED" || type == "BOOKMARK";
  const auto version = object != nullptr ? string_at(*object, {"metadata", "resourceVersion"}) : std::nullopt;
  if (!known || !version) {
    // Skipping it could lose a change for ever; only a list brings the store right again.
    metrics_.bad_lines.add();
    return trouble(
        ApiError::transport(ApiError::kBadAnswer, "a watch event that makes no sense: " + cut_utf8(line, 200)),
        State::Empty);
  }
  version_ = *version;
  if (type == "BOOKMARK") {
    metrics_.bookmarks.add();
    store_.advance(version_);
    return milliseconds::zero();
  }
  metrics_.events.add();
  Object item = store_.project(std::move((*event)["object"]));
  if (type == "DELETED") {
    store_.erase(item);
  } else {
    store_.put(std::move(item));
  }
  return milliseconds::zero();
}

milliseconds ListWatch::handle_end() {
  close_watch();
  state_ = State::Listed;
  const bool at_once = !heard_on_watch_ && options_.clock->now() - opened_at_ < kAtOnce;
  if (!at_once) return milliseconds::zero();
  ++empty_ends_;
  const State next = empty_ends_ % kEmptyEndsBeforeList == 0 ? State::Empty : State::Listed;
  return trouble(ApiError::transport(ApiError::kBadAnswer, "the watch ended at once"), next);
}

}  // namespace loadline::kube
