#include "kube/list_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace loadline::kube {
namespace {

using std::chrono::milliseconds;

// The waits of client-go's reflector (tools/cache/reflector.go).
constexpr auto kFirstWait = milliseconds(800);
constexpr auto kLongestWait = std::chrono::seconds(30);
constexpr auto kHealthyAgain = std::chrono::minutes(2);
// A watch that ends sooner without a word did not work, though the server says nothing against it.
constexpr auto kAtOnce = std::chrono::seconds(1);
// After so many watches without an event the version itself is suspect: list anew.
constexpr int kFruitlessBeforeList = 5;
// A server that streams lists marks their end within moments of the last object.
constexpr auto kSilenceInStream = std::chrono::seconds(10);
// The transport gives up a silent connection before this; it is for a connection that trickles for ever.
constexpr auto kOverrun = std::chrono::seconds(30);

// How long one step waits for a line; cancel() does not wait for it. In a stream it is how exactly silence is measured.
constexpr auto kReadWait = std::chrono::seconds(5);
constexpr auto kReadWaitInStream = std::chrono::seconds(1);

}  // namespace

ListWatch::ListWatch(Client& client, Store& store, const ReflectorOptions& options, ReflectorMetrics& metrics)
    : client_(client),
      store_(store),
      options_(options),
      metrics_(metrics),
      streams_served_(options.stream_lists),
      stream_next_(options.stream_lists),
      last_trouble_(options_.clock->now()) {}

milliseconds ListWatch::step(const std::stop_token& stop) {
  if (stop.stop_requested()) return milliseconds::zero();
  switch (state_) {
    case State::Empty: return stream_next_ ? open(stop, State::Streaming) : list(stop);
    case State::Listed: return open(stop, State::Watching);
    case State::Streaming:
    case State::Watching: return take_in(stop);
  }
  return kLongestWait;
}

void ListWatch::cancel() {
  const std::lock_guard lock(mutex_);
  if (stream_) stream_->cancel();
}

void ListWatch::start_over() {
  close_watch();
  metrics_.in_touch.set(0);
  initial_.clear();
  state_ = State::Empty;
}

void ListWatch::heard() {
  heard_at_ = options_.clock->now();
  metrics_.last_event_ms.set(std::chrono::duration_cast<milliseconds>(heard_at_.time_since_epoch()).count());
}

void ListWatch::close_watch() {
  const std::lock_guard lock(mutex_);
  stream_.reset();
}

milliseconds ListWatch::trouble(const ApiError& error, State next) {
  close_watch();
  initial_.clear();
  state_ = next;
  if (error.canceled()) return milliseconds::zero();
  metrics_.in_touch.set(0);
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
  page_options.page_size = list_in_one_ ? 0 : options_.page_size;
  CallOptions call;
  call.stop = stop;
  std::vector<Object> objects;
  std::string token;
  do {
    // No resourceVersion: the newest there is. An expired one must not come back, and an old cache neither.
    Answer<List> page = client_.list_page(store_.resource(), page_options, token, call);
    if (!page) {
      // Pages that expire once may well do so again, on a slow way to a large cluster.
      list_in_one_ = page.error().expired() && !token.empty();
      return trouble(page.error(), State::Empty);
    }
    for (Object& item : page->items) objects.push_back(store_.project(item.json()));
    token = page->next;
    version_ = page->resource_version;
  } while (!token.empty());
  if (version_.empty()) {
    return trouble(ApiError::transport(ApiError::kBadAnswer, "a list without a resourceVersion"), State::Empty);
  }
  store_.replace(std::move(objects), version_);
  listed();
  heard();
  state_ = State::Listed;
  return milliseconds::zero();
}

void ListWatch::listed() {
  metrics_.lists.add();
  metrics_.synced.set(1);
  metrics_.in_touch.set(1);
  fruitless_watches_ = 0;
  list_in_one_ = false;
  stream_next_ = streams_served_;
}

milliseconds ListWatch::open(const std::stop_token& stop, State as) {
  const double spread = static_cast<double>((options_.max_watch - options_.min_watch).count()) * random_unit();
  watch_time_ = options_.min_watch + std::chrono::seconds(static_cast<std::int64_t>(spread));
  WatchOptions watch;
  watch.ns = options_.ns;
  watch.label_selector = options_.label_selector;
  watch.field_selector = options_.field_selector;
  watch.initial_events = as == State::Streaming;
  watch.resource_version = as == State::Streaming ? "" : version_;
  watch.timeout = watch_time_;
  std::shared_ptr<WatchStream> stream = client_.watch(store_.resource(), watch);
  const std::lock_guard lock(mutex_);
  stream_ = std::move(stream);
  if (stop.stop_requested()) stream_->cancel();  // cancel() may have come before there was anything to cancel
  metrics_.watches.add();
  opened_at_ = options_.clock->now();
  heard_at_ = opened_at_;
  heard_on_watch_ = false;
  state_ = as;
  return milliseconds::zero();
}

milliseconds ListWatch::take_in(const std::stop_token& stop) {
  const WatchRead read = stream_->read(state_ == State::Streaming ? kReadWaitInStream : kReadWait);
  switch (read.kind) {
    case WatchRead::Kind::Line: return handle_line(read.line);
    case WatchRead::Kind::Timeout: return handle_silence(read.answered);
    case WatchRead::Kind::End: return stop.stop_requested() ? milliseconds::zero() : handle_end();
    case WatchRead::Kind::Failed: return watch_failed(read.error);
  }
  return milliseconds::zero();
}

milliseconds ListWatch::handle_silence(bool answered) {
  const Clock::Time now = options_.clock->now();
  if (now - opened_at_ > watch_time_ + kOverrun) {
    return watch_failed(ApiError::transport(ApiError::kTimeout, "the watch outlived its time"));
  }
  // A connection that does not come about says nothing of what the server can do. One that does and has nothing to tell
  // of has told it.
  if (!answered) heard_at_ = now;
  if (state_ == State::Watching) metrics_.in_touch.set(answered ? 1 : 0);
  if (state_ == State::Streaming && now - heard_at_ >= kSilenceInStream) {
    // An older server, or something between that holds the mark back: either will do so again.
    streams_served_ = false;
    return watch_failed(ApiError::transport(ApiError::kTimeout, "the end of a streamed list was not marked"));
  }
  return milliseconds::zero();
}

milliseconds ListWatch::watch_failed(const ApiError& error) {
  if (state_ == State::Streaming) {
    // Refused: not served here. Anything else but 429 may be the stream's fault too; pages are the other way.
    if (error.code == Error::Code::Invalid) streams_served_ = false;
    stream_next_ = streams_served_ && error.http_status == 429;
    return trouble(error, State::Empty);
  }
  // From this version the server can tell nothing more.
  const bool lost = error.expired() || error.not_found() || error.version_too_new || error.unreadable();
  // 429, and a connection that was refused or broke: the version is good, and a list would only add to the load.
  const bool answered = error.http_status == 0 ? error.reason == ApiError::kBadAnswer : error.http_status != 429;
  return trouble(error, lost || (answered && fruitless_too_often()) ? State::Empty : State::Listed);
}

bool ListWatch::fruitless_too_often() {
  if (heard_on_watch_) return false;
  return ++fruitless_watches_ % kFruitlessBeforeList == 0;
}

milliseconds ListWatch::handle_line(const std::string& line) {
  heard();
  std::optional<WatchEvent> event = read_watch_event(line, store_.resource().kind);
  if (!event) {
    // Skipping it could lose a change for ever; only a list brings the store right again.
    metrics_.bad_lines.add();
    if (state_ == State::Streaming) stream_next_ = false;
    return trouble(
        ApiError::transport(ApiError::kBadAnswer, "a watch event that makes no sense: " + cut_utf8(line, 200)),
        State::Empty);
  }
  if (event->type == WatchEvent::Type::Error) return watch_failed(event->error);
  heard_on_watch_ = true;
  fruitless_watches_ = 0;
  if (event->type == WatchEvent::Type::Bookmark) metrics_.bookmarks.add();
  if (state_ == State::Streaming) {
    take_initial(std::move(*event));
  } else {
    take_change(std::move(*event));
    metrics_.in_touch.set(1);
  }
  return milliseconds::zero();
}

void ListWatch::take_initial(WatchEvent event) {
  if (event.type == WatchEvent::Type::Bookmark) {
    if (!event.ends_initial_events) return;
    std::vector<Object> objects;
    objects.reserve(initial_.size());
    for (auto& [key, object] : initial_) objects.push_back(std::move(object));
    initial_.clear();
    version_ = std::move(event.version);
    metrics_.streamed_lists.add();
    store_.replace(std::move(objects), version_);
    listed();
    state_ = State::Watching;
    return;
  }
  // Their versions are no order: each object comes with its own. Only the mark's is the list's.
  Object object = store_.project(std::move(event.object));
  ObjectKey key = object.key();
  if (event.type == WatchEvent::Type::Deleted) {
    initial_.erase(key);
  } else {
    initial_.insert_or_assign(std::move(key), std::move(object));
  }
}

void ListWatch::take_change(WatchEvent event) {
  if (event.type == WatchEvent::Type::Bookmark) {
    store_.advance(event.version);
  } else {
    metrics_.events.add();
    Object object = store_.project(std::move(event.object));
    if (event.type == WatchEvent::Type::Deleted) {
      store_.erase(object);
    } else {
      store_.put(std::move(object));
    }
  }
  version_ = std::move(event.version);
}

milliseconds ListWatch::handle_end() {
  const bool at_once = !heard_on_watch_ && options_.clock->now() - opened_at_ < kAtOnce;
  if (state_ == State::Streaming) {
    return watch_failed(ApiError::transport(ApiError::kBadAnswer, "a streamed list ended before its mark"));
  }
  if (at_once) {
    return trouble(ApiError::transport(ApiError::kBadAnswer, "the watch ended at once"),
                   fruitless_too_often() ? State::Empty : State::Listed);
  }
  close_watch();
  state_ = State::Listed;
  return milliseconds::zero();
}

}  // namespace loadline::kube
