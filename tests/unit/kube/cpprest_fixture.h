// Transports to servers of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "kube/cpprest_transport.h"
#include "tests/unit/kube/http_server.h"

namespace loadline::kube {

inline std::shared_ptr<Transport> transport_to(ClusterConfig config) {
  if (!config.auth) config.auth = static_auth({.authorization = "Bearer secret", .identity = {}});
  Result<std::shared_ptr<Transport>> made = make_cpprest_transport(config);
  EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
  return made ? *made : nullptr;
}

inline std::shared_ptr<Transport> transport_to(const HttpServer& server) {
  ClusterConfig config;
  config.server = server.url();
  return transport_to(config);
}

inline Request get(std::string target) {
  Request request;
  request.target = std::move(target);
  return request;
}

// Answers every request of a connection with `answer(request)`.
inline HttpServer::Handler answering(std::function<std::string(const std::string&)> answer) {
  return [answer = std::move(answer)](Connection& connection) {
    for (std::string request = connection.read_request(); !request.empty(); request = connection.read_request()) {
      if (!connection.write(answer(request))) return;
    }
  };
}

}  // namespace loadline::kube
