// A folder of configuration files, an environment and a clock of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kube/config.h"

namespace loadline::kube {

class ConfigTest : public testing::Test {
 protected:
  ConfigTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("loadline-config-" + std::to_string(::getpid()) + "-" + unique())) {
    std::filesystem::create_directories(folder_);
    options_.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    };
    options_.clock = clock_;
    options_.service_account_dir = (folder_ / "sa").string();
  }
  ~ConfigTest() override { std::filesystem::remove_all(folder_); }

  static std::string unique() {
    static int n = 0;
    return std::to_string(++n);
  }

  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  // A kubeconfig with one context "c" whose user has `user` (YAML flow fields).
  std::string kubeconfig_with(const std::string& user, const std::string& cluster = "server: https://api:6443") {
    return write("config",
                 "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: "
                 "team}}]\nclusters: [{name: k, cluster: {" +
                     cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n");
  }

  std::string authorization(const ClusterConfig& config) {
    const Result<Credentials> who = config.auth->credentials();
    return who ? who->authorization : "error: " + who.error().message;
  }

  const std::filesystem::path folder_;
  std::map<std::string, std::string> environment_;
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  ConfigOptions options_;
};

}  // namespace loadline::kube
