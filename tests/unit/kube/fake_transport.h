// A Transport that answers from a script: what tests of everything above the wire run on.
//
//   FakeTransport transport;
//   transport.on("GET", "/api/v1/pods", {200, R"({"items":[]})"});   // answers in order; the last one stays
//   transport.watch({line(...), end()});                             // one script per watch opened
//   transport.stream_list({line(...)});                              // the same for streaming lists; others are
//   refused
//
// Thread-safety: all members from any thread.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kube/line_queue.h"
#include "kube/transport.h"

namespace loadline::kube {

class FakeTransport final : public Transport {
 public:
  using Handler = std::function<Answer<Response>(const Request&)>;

  /// One of the things a watch may do, in order. After the last the stream stays open, silent.
  struct WatchStep {
    enum class Kind { Line, End, Fail };
    Kind kind = Kind::Line;
    std::string line;
    ApiError error;
  };
  static WatchStep line(std::string text) { return {WatchStep::Kind::Line, std::move(text), {}}; }
  static WatchStep end() { return {WatchStep::Kind::End, {}, {}}; }
  static WatchStep fail(ApiError error) { return {WatchStep::Kind::Fail, {}, std::move(error)}; }

  static Answer<Response> reply(int status, std::string body, std::map<std::string, std::string> headers = {}) {
    return Response{status, std::move(body), std::move(headers)};
  }

  /// Adds an answer for `method` on targets that begin with `path`. Answers are used up in order but for the last.
  void on(const std::string& method, const std::string& path, Answer<Response> answer) {
    const std::lock_guard lock(mutex_);
    answers_[{method, path}].push_back(std::move(answer));
  }
  /// Answers everything instead of the script.
  void handle(Handler handler) {
    const std::lock_guard lock(mutex_);
    handler_ = std::move(handler);
  }
  /// The script of the next watch that has none yet. A watch without one stays silent.
  void watch(std::vector<WatchStep> steps) {
    const std::lock_guard lock(mutex_);
    watches_.push_back(std::move(steps));
  }
  /// The script of the next streaming list, which goes on as a watch. One without a script is refused, as by a server
  /// that has none.
  void stream_list(std::vector<WatchStep> steps) {
    const std::lock_guard lock(mutex_);
    streamed_lists_.push_back(std::move(steps));
  }
  /// Reads of a watch give Timeout at once when nothing is there.
  void never_wait() { never_wait_ = true; }
  /// With false the next watches get no answer, not even a status; with true the one opened last gets it now.
  void answer_watches(bool whether) {
    const std::lock_guard lock(mutex_);
    answer_watches_ = whether;
    if (whether && !streams_.empty()) streams_.back()->set_status(200, std::nullopt);
  }
  /// Sends a line on the watch opened last.
  void push_line(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (!streams_.empty()) streams_.back()->write(text + "\n", [] {});
  }

  Answer<Response> send(Request request, std::chrono::milliseconds, std::stop_token stop) override {
    Handler handler;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      handler = handler_;
    }
    if (stop.stop_requested()) return ApiError::transport(ApiError::kCanceled, "canceled");
    if (handler) return handler(request);
    const std::lock_guard lock(mutex_);
    return scripted(request);
  }

  std::unique_ptr<WatchStream> open_watch(Request request, std::chrono::milliseconds idle) override {
    const std::lock_guard lock(mutex_);
    const bool streams_list = request.target.find("sendInitialEvents=true") != std::string::npos;
    auto& scripts = streams_list ? streamed_lists_ : watches_;
    auto lines = std::make_shared<LineQueue>();
    if (answer_watches_) lines->set_status(200, std::nullopt);
    if (streams_list && scripts.empty()) {
      lines->finish(ApiError::from_response(422, "sendInitialEvents is forbidden"));
      ++refused_streams_;
    } else {
      watch_requests_.push_back(request);
      idle_times_.push_back(idle);
      streams_.push_back(lines);
    }
    if (!scripts.empty()) {
      for (const WatchStep& step : scripts.front()) play(step, *lines);
      scripts.pop_front();
    }
    return std::make_unique<Stream>(*this, lines);
  }

  [[nodiscard]] std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  [[nodiscard]] std::vector<Request> watch_requests() const {
    const std::lock_guard lock(mutex_);
    return watch_requests_;
  }
  [[nodiscard]] std::vector<std::chrono::milliseconds> idle_times() const {
    const std::lock_guard lock(mutex_);
    return idle_times_;
  }
  [[nodiscard]] int refused_streams() const { return refused_streams_; }
  /// Watches that nobody has closed.
  [[nodiscard]] int open_streams() const { return open_streams_; }
  [[nodiscard]] std::size_t count(const std::string& method) const {
    std::size_t n = 0;
    for (const Request& request : requests()) n += to_string(request.method) == method ? 1 : 0;
    return n;
  }

 private:
  class Stream final : public WatchStream {
   public:
    Stream(FakeTransport& of, std::shared_ptr<LineQueue> lines) : of_(of), lines_(std::move(lines)) {
      ++of_.open_streams_;
    }
    ~Stream() override {
      lines_->close();
      --of_.open_streams_;
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    WatchRead read(std::chrono::milliseconds wait) override {
      return lines_->read(of_.never_wait_ ? std::chrono::milliseconds(0) : wait);
    }
    void cancel() noexcept override { lines_->close(); }

   private:
    FakeTransport& of_;
    const std::shared_ptr<LineQueue> lines_;
  };

  static void play(const WatchStep& step, LineQueue& lines) {
    switch (step.kind) {
      case WatchStep::Kind::Line: lines.write(step.line + "\n", [] {}); break;
      case WatchStep::Kind::End: lines.finish(std::nullopt); break;
      case WatchStep::Kind::Fail: lines.finish(step.error); break;
    }
  }

  Answer<Response> scripted(const Request& request) {
    for (auto& [key, answers] : answers_) {
      if (key.first != to_string(request.method) || !request.target.starts_with(key.second)) continue;
      Answer<Response> answer = answers.front();
      if (answers.size() > 1) answers.pop_front();
      return answer;
    }
    return Response{404, R"({"kind":"Status","code":404,"reason":"NotFound","message":"not scripted"})", {}};
  }

  mutable std::mutex mutex_;
  Handler handler_;
  // Longest path first, so that one object is found before its collection.
  std::map<std::pair<std::string, std::string>, std::deque<Answer<Response>>, std::greater<>> answers_;
  std::deque<std::vector<WatchStep>> watches_;
  std::deque<std::vector<WatchStep>> streamed_lists_;
  std::vector<std::shared_ptr<LineQueue>> streams_;
  std::vector<Request> requests_;
  std::vector<Request> watch_requests_;
  std::vector<std::chrono::milliseconds> idle_times_;
  std::atomic<int> refused_streams_{0};
  std::atomic<int> open_streams_{0};
  std::atomic<bool> never_wait_{false};
  bool answer_watches_ = true;
};

}  // namespace loadline::kube
