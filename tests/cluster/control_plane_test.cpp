// The test cluster itself: what other tests build on must hold.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "tests/cluster/cluster.h"

namespace loadline::testing {
namespace {

using nlohmann::json;
using std::chrono_literals::operator""s;

/// Ids of the cluster's processes, as the tool recorded them.
std::set<pid_t> recorded_processes(const std::filesystem::path& folder) {
  std::ifstream file(folder / "state.json");
  const json state = json::parse(file);
  std::set<pid_t> ids;
  for (const json& process : state.at("processes")) ids.insert(process.at("pid").get<pid_t>());
  return ids;
}

/// A process that has ended and merely waits to be reaped does not run.
bool runs(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t bracket = text.rfind(')');
  return bracket != std::string::npos && text.at(bracket + 2) != 'Z';
}

bool any_runs(const std::set<pid_t>& ids) {
  for (const pid_t id : ids) {
    if (runs(id)) return true;
  }
  return false;
}

/// A Job of one pod that plays out what the annotations say.
std::string job_yaml(const std::string& name, const std::string& annotations) {
  return R"(
apiVersion: batch/v1
kind: Job
metadata: {name: )" +
         name + R"(}
spec:
  backoffLimit: 0
  template:
    metadata:
      annotations: {)" +
         annotations + R"(}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 30
      containers: [{name: trainer, image: example.com/trainer}]
)";
}

/// An attempt as the operator makes it: an Indexed Job of two nodes with eight GPUs each, ended whole by any
/// disruption.
std::string gang_yaml(const std::string& name, const std::string& pool) {
  return R"(
apiVersion: batch/v1
kind: Job
metadata: {name: )" +
         name + R"(}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 0
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules:
      - action: FailJob
        onPodConditions: [{type: DisruptionTarget, status: "True"}]
  template:
    metadata:
      annotations: {loadline.dev/fake-duration-seconds: "600"}
    spec:
      restartPolicy: Never
      nodeSelector: {cloud.google.com/gke-nodepool: )" +
         pool + R"(}
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
      containers:
        - name: trainer
          image: example.com/trainer
          resources: {limits: {nvidia.com/gpu: 8}}
)";
}

const json& first_pod(const json& pods) { return pods.at("items").at(0); }

std::string pods_in_phase(const Cluster& cluster, const std::string& job, const std::string& phase) {
  return cluster
      .kubectl({"get", "pods", "-l", "batch.kubernetes.io/job-name=" + job, "-o", "name",
                "--field-selector=status.phase=" + phase})
      .output;
}

std::string condition_reason(const json& object, const std::string& type) {
  for (const json& condition : object.at("status").value("conditions", json::array())) {
    if (condition.at("type") == type && condition.at("status") == "True") return condition.value("reason", "");
  }
  return "";
}

/// One cluster for the whole suite: each test uses objects of its own.
class ControlPlane : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { shared_ = std::make_unique<Cluster>(Cluster::start({.fleet = "small"})); }
  static void TearDownTestSuite() { shared_.reset(); }

  static Cluster& cluster() { return *shared_; }

  /// The first pod of a Job once the Job has that condition.
  static json pod_of(const std::string& job, const std::string& condition) {
    EXPECT_TRUE(cluster().wait_for_condition("job/" + job, condition, 40s)) << cluster().log("kwok");
    return first_pod(cluster().get({"pods", "-l", "batch.kubernetes.io/job-name=" + job}));
  }

 private:
  static std::unique_ptr<Cluster> shared_;
};
std::unique_ptr<Cluster> ControlPlane::shared_;

/// "v1.36.3": the version of Kubernetes in the go.mod of the minor under test.
std::string pinned_version() {
  const char* asked = std::getenv("CONTROL_PLANE");  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  const std::string minor = asked != nullptr ? asked : "1.36";
  std::ifstream file(std::string(LOADLINE_SOURCE_DIR) + "/tests/cluster/tools/kubernetes-" + minor + "/go.mod");
  std::string word;
  while (file >> word && word != "k8s.io/kubernetes") {
  }
  file >> word;
  return word;
}

TEST_F(ControlPlane, SaysTheVersionThatItWasPinnedTo) {
  const json versions = json::parse(cluster().kubectl({"version", "-o", "json"}).output);
  ASSERT_EQ(pinned_version().substr(0, 3), "v1.");
  EXPECT_EQ(versions["clientVersion"]["gitVersion"], pinned_version());
  EXPECT_EQ(versions["serverVersion"]["gitVersion"], pinned_version());
}

TEST_F(ControlPlane, RefusesAServiceAccountWhatNobodyGrantedIt) {
  ASSERT_TRUE(cluster().kubectl({"create", "serviceaccount", "powerless"}).ok());
  const CommandResult token = cluster().kubectl({"create", "token", "powerless"});
  ASSERT_TRUE(token.ok()) << token.error;
  const std::string server =
      cluster().kubectl({"config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"}).output;
  // Without a kubeconfig, since the administrator's certificate in it would speak before the token.
  const CommandResult answer =
      cluster().kubectl({"--kubeconfig=/dev/null", "--server=" + server,
                         "--certificate-authority=" + (cluster().folder() / "certs" / "ca.crt").string(),
                         "--token=" + token.output.substr(0, token.output.find('\n')), "get", "nodes"});
  EXPECT_NE(answer.error.find("system:serviceaccount:default:powerless"), std::string::npos) << answer.error;
  EXPECT_NE(answer.error.find("Forbidden"), std::string::npos) << answer.error;
}

TEST_F(ControlPlane, PodsFinishAfterTheirTimeWithTheirExitCodeAndMessage) {
  ASSERT_TRUE(cluster().apply(job_yaml("fine", R"(loadline.dev/fake-duration-seconds: "2")")).ok());
  ASSERT_TRUE(
      cluster()
          .apply(job_yaml("broken", R"(loadline.dev/fake-duration-seconds: "1", loadline.dev/fake-exit-code: "3",
                                               loadline.dev/fake-exit-message: "ValueError: loss is NaN")"))
          .ok());
  ASSERT_TRUE(
      cluster()
          .apply(job_yaml("greedy", R"(loadline.dev/fake-duration-seconds: "1", loadline.dev/fake-exit-code: "137",
                                               loadline.dev/fake-exit-reason: OOMKilled)"))
          .ok());

  const json fine = pod_of("fine", "Complete").at("status").at("containerStatuses").at(0).at("state").at("terminated");
  EXPECT_EQ(fine.at("exitCode"), 0);
  EXPECT_EQ(fine.at("reason"), "Completed");

  const json broken =
      pod_of("broken", "Failed").at("status").at("containerStatuses").at(0).at("state").at("terminated");
  EXPECT_EQ(broken.at("exitCode"), 3);
  EXPECT_EQ(broken.at("reason"), "Error");
  EXPECT_EQ(broken.at("message"), "ValueError: loss is NaN");

  const json greedy =
      pod_of("greedy", "Failed").at("status").at("containerStatuses").at(0).at("state").at("terminated");
  EXPECT_EQ(greedy.at("exitCode"), 137);
  EXPECT_EQ(greedy.at("reason"), "OOMKilled");
}

TEST_F(ControlPlane, ListedDurationsAndExitCodesAreTakenByAttempt) {
  const std::string annotations =
      R"(loadline.dev/fake-duration-seconds: "1|1|forever", loadline.dev/fake-exit-code: "7|0")";
  const auto attempt = [&](const std::string& number) {
    std::string yaml = job_yaml("retried-a" + number, annotations);
    const std::string mark = "      annotations:";
    return yaml.insert(yaml.find(mark), "      labels: {loadline.dev/attempt: \"" + number + "\"}\n");
  };
  for (const char* number : {"1", "2", "3"}) ASSERT_TRUE(cluster().apply(attempt(number)).ok());
  EXPECT_TRUE(cluster().wait_for_condition("job/retried-a1", "Failed", 40s));
  EXPECT_TRUE(cluster().wait_for_condition("job/retried-a2", "Complete", 40s));
  EXPECT_TRUE(cluster().wait_for(40s, [] { return !pods_in_phase(cluster(), "retried-a3", "Running").empty(); }))
      << "the third attempt is to run for ever";
}

TEST_F(ControlPlane, DeploymentPodsTurnReadyAndStay) {
  ASSERT_TRUE(cluster().kubectl({"create", "deployment", "server", "--image=example.com/server"}).ok());
  EXPECT_TRUE(cluster().wait_for_condition("deployment/server", "Available", 30s));
}

TEST_F(ControlPlane, ADeletedPodRunsUntilItHasStoppedButNotBeyondItsGracePeriod) {
  // The finalizer keeps the pod for reading: its own times tell how long it ran, however slow this machine is.
  const auto pod = [](const std::string& name, const std::string& stop_seconds) {
    return "{apiVersion: v1, kind: Pod, metadata: {name: " + name +
           ", finalizers: [example.com/read], annotations: {loadline.dev/fake-stop-seconds: \"" + stop_seconds +
           "\"}}, spec: {containers: [{name: trainer, image: example.com/trainer}]}}";
  };
  ASSERT_TRUE(cluster().apply(pod("obedient", "3")).ok());
  ASSERT_TRUE(cluster().apply(pod("stubborn", "60")).ok());
  ASSERT_TRUE(cluster().wait_for_condition("pod/obedient", "Ready", 30s));
  ASSERT_TRUE(cluster().wait_for_condition("pod/stubborn", "Ready", 30s));

  const TimePoint asked = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  ASSERT_TRUE(cluster().kubectl({"delete", "pod", "obedient", "--wait=false", "--grace-period=20"}).ok());
  ASSERT_TRUE(cluster().kubectl({"delete", "pod", "stubborn", "--wait=false", "--grace-period=5"}).ok());
  const auto end_of = [](const std::string& name) {
    EXPECT_EQ(cluster().kubectl({"wait", "pod", name, "--for=jsonpath={.status.phase}=Failed", "--timeout=40s"}).error,
              "");
    return cluster().get({"pod", name}).at("status").at("containerStatuses").at(0).at("state").at("terminated");
  };
  const auto ran_on = [asked](const json& end) {
    return parse_rfc3339(end.at("finishedAt").get<std::string>()).value_or(TimePoint{}) - asked;
  };
  const json obedient = end_of("obedient");
  EXPECT_EQ(obedient.at("exitCode"), 143);
  EXPECT_GE(ran_on(obedient), 3s);
  const json stubborn = end_of("stubborn");
  EXPECT_EQ(stubborn.at("exitCode"), 137);
  EXPECT_GE(ran_on(stubborn), 5s);
  EXPECT_LT(ran_on(stubborn), 60s);

  for (const char* name : {"obedient", "stubborn"}) {
    ASSERT_TRUE(
        cluster().kubectl({"patch", "pod", name, "--type=merge", "-p", R"({"metadata":{"finalizers":null}})"}).ok());
    EXPECT_TRUE(cluster().kubectl({"wait", "pod", name, "--for=delete", "--timeout=20s"}).ok());
  }
}

TEST_F(ControlPlane, AClaimIsBoundInTheZoneOfItsFirstPod) {
  ASSERT_TRUE(cluster()
                  .apply(R"(
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: checkpoints}
spec: {accessModes: [ReadWriteMany], storageClassName: fast-rwx, resources: {requests: {storage: 300Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  nodeSelector: {topology.kubernetes.io/zone: us-central1-b}
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  containers: [{name: trainer, image: example.com/trainer, volumeMounts: [{name: data, mountPath: /checkpoints}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: checkpoints}}]
)")
                  .ok());
  ASSERT_TRUE(cluster().wait_for_condition("pod/writer", "Ready", 30s));
  const json claim = cluster().get({"pvc", "checkpoints"});
  EXPECT_EQ(claim.at("status").at("phase"), "Bound");
  const json volume = cluster().get({"pv", claim.at("spec").at("volumeName").get<std::string>()});
  EXPECT_EQ(volume.at("metadata").at("labels").at("topology.kubernetes.io/zone"), "us-central1-b");
  EXPECT_EQ(volume.at("spec").at("capacity").at("storage"), "500Gi") << "the smallest that is large enough";
}

TEST_F(ControlPlane, AGangEndsWholeHoweverItsNodeIsTaken) {
  // Three gangs at once, since each story takes most of a minute.
  const std::vector<std::pair<std::string, std::string>> gangs{
      {"noticed", "a100-spot"}, {"deleted", "a100"}, {"lost", "h100"}};
  for (const auto& [gang, pool] : gangs) ASSERT_TRUE(cluster().apply(gang_yaml(gang, pool)).ok());
  for (const auto& [gang, pool] : gangs) {
    ASSERT_TRUE(cluster().wait_for(30s, [&gang = gang] {
      const std::string running = pods_in_phase(cluster(), gang, "Running");
      return std::count(running.begin(), running.end(), '\n') == 2;
    })) << gang;
  }

  cluster().give_notice("a100-spot-0");
  cluster().reclaim_node("a100-0");
  cluster().lose_node("h100-0");
  EXPECT_TRUE(cluster().wait_for_condition("node/h100-0", "Ready=Unknown", 40s));
  // Until here nobody can tell that the pod on the silent node is dead: the gang still counts as running.
  EXPECT_EQ(condition_reason(cluster().get({"job", "lost"}), "Failed"), "");
  cluster().reclaim_node("h100-0");

  for (const auto& [gang, pool] : gangs) {
    EXPECT_TRUE(cluster().wait_for_condition("job/" + gang, "Failed", 100s)) << gang;
    EXPECT_EQ(condition_reason(cluster().get({"job", gang}), "Failed"), "PodFailurePolicy") << gang;
    EXPECT_EQ(pods_in_phase(cluster(), gang, "Running"), "") << gang;
    EXPECT_EQ(pods_in_phase(cluster(), gang, "Succeeded"), "") << gang;
  }
  const json noticed = cluster().get({"pods", "--field-selector=spec.nodeName=a100-spot-0"});
  EXPECT_EQ(condition_reason(first_pod(noticed), "DisruptionTarget"), "TerminationByKubelet");

  cluster().add_fleet("small");
  EXPECT_FALSE(cluster().get({"node", "a100-0"}).is_null()) << "a reclaimed node comes back with its fleet";
}

TEST_F(ControlPlane, ASecondClusterStandsBesideTheFirstAndLeavesNothing) {
  std::set<pid_t> processes;
  std::filesystem::path folder;
  {
    const Cluster second = Cluster::start({.fleet = "clouds"});
    folder = second.folder();
    processes = recorded_processes(folder);
    EXPECT_EQ(processes.size(), 6U) << "etcd, API server, controller manager, scheduler, kwok and the keeper";
    EXPECT_TRUE(any_runs(processes));
    EXPECT_TRUE(second.get({"node", "a100-0"}).is_null()) << "the second cluster must not be the first";
    EXPECT_FALSE(cluster().get({"node", "a100-0"}).is_null());

    const json gke = second.get({"node", "gke-h100-spot-0"});
    EXPECT_EQ(gke["metadata"]["labels"]["cloud.google.com/gke-spot"], "true");
    EXPECT_EQ(gke["metadata"]["labels"]["cloud.google.com/gke-accelerator"], "nvidia-h100-80gb");
    EXPECT_FALSE(gke["metadata"]["labels"].contains("nvidia.com/gpu.product")) << "GKE installs no feature discovery";
    EXPECT_EQ(gke["status"]["allocatable"]["nvidia.com/gpu"], "8");
    EXPECT_EQ(gke["spec"]["taints"],
              json::parse(R"([{"key":"nvidia.com/gpu","value":"present","effect":"NoSchedule"}])"));

    const json eks = second.get({"node", "eks-p5-spot-0"});
    EXPECT_EQ(eks["metadata"]["labels"]["eks.amazonaws.com/capacityType"], "SPOT");
    EXPECT_EQ(eks["metadata"]["labels"]["nvidia.com/gpu.memory"], "81559");
    EXPECT_EQ(eks["metadata"]["labels"]["topology.kubernetes.io/region"], "us-east-1");
    EXPECT_EQ(eks["status"]["allocatable"]["vpc.amazonaws.com/efa"], "32");
    EXPECT_FALSE(eks["spec"].contains("taints"));

    const json aks = second.get({"node", "aks-nd-a100-spot-0"});
    EXPECT_EQ(aks["metadata"]["labels"]["kubernetes.azure.com/scalesetpriority"], "spot");
    EXPECT_EQ(aks["spec"]["taints"].size(), 2U);

    const json karpenter = second.get({"node", "karpenter-g6e-spot-0"});
    EXPECT_EQ(karpenter["metadata"]["labels"]["karpenter.k8s.aws/instance-gpu-name"], "l40s");
    EXPECT_EQ(karpenter["metadata"]["labels"]["karpenter.sh/capacity-type"], "spot");

    const json bare = second.get({"node", "bare-dgx-0"});
    EXPECT_EQ(bare["metadata"]["labels"]["nvidia.com/gpu.product"], "NVIDIA-H100-80GB-HBM3");
    EXPECT_FALSE(bare["metadata"]["labels"].contains("topology.kubernetes.io/zone"));
  }
  EXPECT_FALSE(any_runs(processes));
  if (!HasFailure()) {
    EXPECT_FALSE(std::filesystem::exists(folder));
  }
}

TEST_F(ControlPlane, ACrashedTestProgramLeavesNothingRunning) {
  const pid_t owner = fork();
  ASSERT_GE(owner, 0);
  if (owner == 0) {
    execlp("sleep", "sleep", "600", nullptr);
    _exit(127);
  }
  const std::filesystem::path folder = std::filesystem::path(LOADLINE_BINARY_DIR) / "clusters" / "orphan";
  std::filesystem::remove_all(folder);
  const std::string tool = std::string(LOADLINE_SOURCE_DIR) + "/tests/cluster/loadline-cluster";
  const CommandResult up = run_command({tool, "up", "--dir", folder.string(), "--owner-pid", std::to_string(owner)});
  ASSERT_TRUE(up.ok()) << up.error;
  const std::set<pid_t> processes = recorded_processes(folder);

  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(cluster().wait_for(40s, [&processes] { return !any_runs(processes); }));
  EXPECT_TRUE(std::filesystem::exists(folder / "logs" / "apiserver.log")) << "logs tell what the crash was about";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace loadline::testing
