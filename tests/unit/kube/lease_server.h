// One Lease behind a FakeTransport, with the API server's rules: conflict on a stale version, AlreadyExists on create.
#pragma once

#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/unit/kube/fake_transport.h"
#include "tests/unit/kube/objects.h"

namespace loadline::kube {

class LeaseServer {
 public:
  /// When set, every request is answered so instead.
  void fail_with(std::optional<Answer<Response>> failure) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
  }
  void set_holder(const std::string& holder) {
    const std::lock_guard lock(mutex_);
    lease_["metadata"]["name"] = "lease";
    lease_["spec"]["holderIdentity"] = holder;
    lease_["spec"]["leaseDurationSeconds"] = 15;
    bump();
  }
  [[nodiscard]] nlohmann::json lease() const {
    const std::lock_guard lock(mutex_);
    return lease_;
  }
  [[nodiscard]] std::string holder() const { return lease()["spec"].value("holderIdentity", ""); }

  Answer<Response> answer(const Request& request) {
    const std::lock_guard lock(mutex_);
    if (failure_) return *failure_;
    const bool exists = lease_.contains("metadata");
    if (request.method == Method::Get) {
      return exists ? FakeTransport::reply(200, lease_.dump())
                    : FakeTransport::reply(404, status_body(404, "NotFound"));
    }
    const nlohmann::json written = nlohmann::json::parse(request.body);
    if (request.method == Method::Post && exists) return FakeTransport::reply(409, status_body(409, "AlreadyExists"));
    if (request.method == Method::Put &&
        written["metadata"]["resourceVersion"] != lease_["metadata"]["resourceVersion"]) {
      return FakeTransport::reply(409, status_body(409, "Conflict"));
    }
    lease_ = written;
    bump();
    return FakeTransport::reply(200, lease_.dump());
  }

 private:
  void bump() { lease_["metadata"]["resourceVersion"] = std::to_string(++version_); }

  mutable std::mutex mutex_;
  nlohmann::json lease_ = nlohmann::json::object();
  int version_ = 0;
  std::optional<Answer<Response>> failure_;
};

}  // namespace loadline::kube
