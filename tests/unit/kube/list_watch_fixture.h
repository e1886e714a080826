// A ListWatch over a scripted server, walked step by step.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kube/list_watch.h"
#include "tests/unit/kube/fake_transport.h"
#include "tests/unit/kube/objects.h"

namespace loadline::kube {

class ListWatchTest : public testing::Test {
 protected:
  using State = ListWatch::State;

  ListWatchTest() {
    client_options_.clock = clock_;
    client_options_.requests_per_second = 0;
    client_options_.reads.max_tries = 1;
    client_ = std::make_unique<Client>(transport_, client_options_);
    transport_->never_wait();
    options_.clock = clock_;
    options_.page_size = 2;
    options_.stream_lists = false;
    begin();
    subscription_ = store_.listen([this](const Change& change) {
      changes_.push_back((change.after ? change.before ? "~" : "+" : "-") + change.key.name);
    });
  }

  /// With the options as they are.
  void begin() { loop_ = std::make_unique<ListWatch>(*client_, store_, options_, metrics_); }
  std::chrono::milliseconds step() { return loop_->step({}); }
  void steps(int n) {
    for (int i = 0; i < n; ++i) step();
  }
  void lists(const std::string& body) { transport_->on("GET", "/api/v1/pods", FakeTransport::reply(200, body)); }
  void lists(Answer<Response> answer) { transport_->on("GET", "/api/v1/pods", std::move(answer)); }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const Object& object : store_.list()) out.push_back(object.name());
    return out;
  }
  std::vector<std::string> changes() { return std::exchange(changes_, {}); }
  [[nodiscard]] std::string last_watch() const { return transport_->watch_requests().back().target; }

  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::shared_ptr<FakeTransport> transport_ = std::make_shared<FakeTransport>();
  ClientOptions client_options_;
  std::unique_ptr<Client> client_;
  Store store_{resources::kPods, {}, clock_};
  ReflectorOptions options_;
  ReflectorMetrics metrics_;
  std::unique_ptr<ListWatch> loop_;
  std::vector<std::string> changes_;
  Subscription subscription_;
};

inline FakeTransport::WatchStep event(const std::string& type, const nlohmann::json& object) {
  return FakeTransport::line(watch_event(type, object));
}
inline FakeTransport::WatchStep error_event(int code, const std::string& reason) {
  return event("ERROR", nlohmann::json::parse(status_body(code, reason)));
}
inline FakeTransport::WatchStep refusal(int status, std::optional<std::chrono::seconds> retry_after = {}) {
  return FakeTransport::fail(ApiError::from_response(status, "", retry_after));
}
inline FakeTransport::WatchStep broken_connection() {
  return FakeTransport::fail(ApiError::transport(ApiError::kConnection, "reset"));
}

}  // namespace loadline::kube
