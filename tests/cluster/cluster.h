// A real control plane with pretended GPU nodes, for one test or one test suite:
//
//   Cluster cluster = Cluster::start({.fleet = "small"});
//   cluster.install();                                   // Loadline's chart and programs, when the test needs them
//   EXPECT_TRUE(cluster.apply(kJob).ok());
//   cluster.reclaim_node("a100-spot-0");
//   EXPECT_TRUE(cluster.wait_for_condition("trainingjob/llama", "Succeeded", 120s));
//
// A thin face of tests/cluster/loadline-cluster, whose README tells what fleets, stories and pod annotations there are.
//
// Ownership: the cluster ends with the object. It also ends, by itself, when the test program crashes. Its logs are
// kept when any test of the program has failed so far, and it is said where. Errors: what must work for a test to make
// sense (start, install, a story) throws std::runtime_error with the tool's words, which GoogleTest reports as the
// failure. What a test judges (kubectl, apply) returns its result. Thread-safety: kubectl, apply, get and wait_for may
// be called from several threads; the rest from one.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/process/command.h"

namespace loadline::testing {

struct ClusterOptions {
  std::string fleet = "small";     ///< a name in tests/cluster/fleets or a file; empty for no nodes
  std::string control_plane = {};  ///< Kubernetes minor; empty for $CONTROL_PLANE, else the tool's default
  bool workload_api = false;       ///< serve the native gang-scheduling API
};

class Cluster {
 public:
  /// Starts a cluster in a folder of its own under the build folder; 5 to 10 s.
  [[nodiscard]] static Cluster start(const ClusterOptions& options = {});

  Cluster(Cluster&& other) noexcept;
  Cluster& operator=(Cluster&&) = delete;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster();

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// The administrator's kubeconfig.
  [[nodiscard]] std::filesystem::path kubeconfig() const { return folder_ / "kubeconfig"; }
  /// The log of a program by its name: "loadline-operator", "apiserver", "kwok", ...
  [[nodiscard]] std::string log(std::string_view program) const;

  [[nodiscard]] CommandResult kubectl(std::vector<std::string> arguments, const std::string& input = {}) const;
  /// `kubectl apply -f -`, as a user would; `arguments` such as "--dry-run=server" or "--server-side" are added.
  [[nodiscard]] CommandResult apply(const std::string& yaml, const std::vector<std::string>& arguments = {}) const;
  /// `kubectl get ARGUMENTS -o json`; null when that fails (the object is not there).
  [[nodiscard]] nlohmann::json get(std::vector<std::string> arguments) const;

  /// Polls until `holds`. False when it did not within the time.
  [[nodiscard]] bool wait_for(std::chrono::seconds within, const std::function<bool()>& holds) const;
  /// Waits for a status condition: wait_for_condition("job/train-a1", "Complete", 30s). The object may yet have to
  /// come.
  [[nodiscard]] bool wait_for_condition(const std::string& object, const std::string& condition,
                                        std::chrono::seconds within) const;

  /// Adds a fleet's pools; of a fleet that is there, the nodes that are missing (a reclaimed node comes back).
  void add_fleet(const std::string& fleet);
  /// Sudden loss: the machine falls silent. After 20 s the node is Unknown; its pods stay until the Node is deleted.
  void lose_node(const std::string& node);
  /// The cloud deletes the Node without a word. Pod garbage collection fails its pods within a minute.
  void reclaim_node(const std::string& node);
  /// The platform's taint, then the kubelet fails the pods (TerminationByKubelet) and the node turns NotReady.
  void give_notice(const std::string& node);
  void make_not_ready(const std::string& node);
  void recover_node(const std::string& node);
  /// "key=value:NoSchedule", or "key-" to take it away.
  void taint_node(const std::string& node, const std::string& taint);

  /// Installs the chart and starts the real webhook and operator beside the cluster; waits until both are ready, then
  /// applies the fleets' GPUPools. `values` are chart values, "operator.replicas=1".
  void install(const std::vector<std::string>& values = {});
  void start_operator();
  void stop_operator();  ///< SIGTERM
  void kill_operator();  ///< SIGKILL
  void start_webhook();
  void stop_webhook();
  void kill_webhook();

 private:
  explicit Cluster(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Runs the tool on this cluster; throws when it fails.
  void tool(const std::string& command, const std::vector<std::string>& arguments = {});

  std::filesystem::path folder_;  ///< empty once moved from
};

}  // namespace loadline::testing
