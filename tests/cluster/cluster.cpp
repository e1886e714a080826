#include "tests/cluster/cluster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace loadline::testing {
namespace {

const std::string kTool = std::string(LOADLINE_SOURCE_DIR) + "/tests/cluster/loadline-cluster";

/// A new folder under the build folder, where people look for what a failed test left.
std::filesystem::path new_folder() {
  const std::filesystem::path parent = std::filesystem::path(LOADLINE_BINARY_DIR) / "clusters";
  std::filesystem::create_directories(parent);
  std::string pattern = (parent / "cluster-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + pattern);
  return pattern;
}

CommandResult run_tool(const std::filesystem::path& folder, const std::string& command,
                       const std::vector<std::string>& arguments) {
  std::vector<std::string> line{kTool, command, "--dir", folder.string()};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return run_command(line);
}

}  // namespace

Cluster Cluster::start(const ClusterOptions& options) {
  std::vector<std::string> arguments{"--owner-pid", std::to_string(getpid())};
  if (!options.fleet.empty()) arguments.insert(arguments.end(), {"--fleet", options.fleet});
  if (!options.control_plane.empty()) arguments.insert(arguments.end(), {"--control-plane", options.control_plane});
  if (options.workload_api) arguments.emplace_back("--workload-api");
  const std::filesystem::path folder = new_folder();
  const CommandResult result = run_tool(folder, "up", arguments);
  if (!result.ok()) {
    throw std::runtime_error("no cluster: " + result.error + "logs: " + (folder / "logs").string());
  }
  return Cluster(folder);
}

Cluster::Cluster(Cluster&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}

Cluster::~Cluster() {
  if (folder_.empty()) return;
  std::vector<std::string> arguments;
  if (::testing::UnitTest::GetInstance()->Failed()) {
    arguments.emplace_back("--keep-logs");
    std::cerr << "logs of the cluster: " << (folder_ / "logs").string() << "\n";
  }
  const CommandResult result = run_tool(folder_, "down", arguments);
  if (!result.ok() || !result.error.empty()) std::cerr << "ending the cluster: " << result.error;
}

void Cluster::tool(const std::string& command, const std::vector<std::string>& arguments) {
  const CommandResult result = run_tool(folder_, command, arguments);
  if (!result.ok()) throw std::runtime_error(command + ": " + result.error);
}

std::string Cluster::log(std::string_view program) const {
  const std::ifstream file(folder_ / "logs" / (std::string(program) + ".log"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

CommandResult Cluster::kubectl(std::vector<std::string> arguments, const std::string& input) const {
  std::vector<std::string> line{kTool, "kubectl", "--dir", folder_.string()};
  line.insert(line.end(), std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  return run_command(line, input);
}

CommandResult Cluster::apply(const std::string& yaml, const std::vector<std::string>& arguments) const {
  std::vector<std::string> line{"apply", "-f", "-"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return kubectl(std::move(line), yaml);
}

nlohmann::json Cluster::get(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "get");
  arguments.insert(arguments.end(), {"-o", "json"});
  const CommandResult result = kubectl(std::move(arguments));
  if (!result.ok()) return nullptr;
  return nlohmann::json::parse(result.output, nullptr, /*allow_exceptions=*/false);
}

bool Cluster::wait_for(std::chrono::seconds within, const std::function<bool()>& holds) const {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
  return true;
}

bool Cluster::wait_for_condition(const std::string& object, const std::string& condition,
                                 std::chrono::seconds within) const {
  const std::string seconds = std::to_string(within.count()) + "s";
  return kubectl({"wait", object, "--for=create", "--timeout=" + seconds}).ok() &&
         kubectl({"wait", object, "--for=condition=" + condition, "--timeout=" + seconds}).ok();
}

void Cluster::add_fleet(const std::string& fleet) { tool("fleet", {fleet}); }
void Cluster::lose_node(const std::string& node) { tool("node", {"lose", node}); }
void Cluster::reclaim_node(const std::string& node) { tool("node", {"reclaim", node}); }
void Cluster::give_notice(const std::string& node) { tool("node", {"notice", node}); }
void Cluster::make_not_ready(const std::string& node) { tool("node", {"notready", node}); }
void Cluster::recover_node(const std::string& node) { tool("node", {"recover", node}); }
void Cluster::taint_node(const std::string& node, const std::string& taint) { tool("node", {"taint", node, taint}); }

void Cluster::install(const std::vector<std::string>& values) {
  std::vector<std::string> arguments{"--bin", std::string(LOADLINE_BINARY_DIR) + "/bin"};
  for (const std::string& value : values) arguments.push_back("--set=" + value);
  tool("install", arguments);
}
void Cluster::start_operator() { tool("start-operator"); }
void Cluster::stop_operator() { tool("stop-operator"); }
void Cluster::kill_operator() { tool("kill-operator"); }
void Cluster::start_webhook() { tool("start-webhook"); }
void Cluster::stop_webhook() { tool("stop-webhook"); }
void Cluster::kill_webhook() { tool("kill-webhook"); }

}  // namespace loadline::testing
