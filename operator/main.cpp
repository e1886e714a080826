// loadline-operator: carries TrainingJobs from admission to their end.

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "api/names.h"
#include "kube/client.h"
#include "kube/clock.h"
#include "kube/config.h"
#include "kube/cpprest_transport.h"
#include "kube/events.h"
#include "kube/leader.h"
#include "kube/retry.h"
#include "operator/caches.h"
#include "operator/controller.h"
#include "operator/metrics.h"
#include "serve/health.h"
#include "serve/server.h"
#include "serve/signals.h"

namespace {

using namespace loadline;              // NOLINT(google-build-using-namespace)
using namespace loadline::controller;  // NOLINT(google-build-using-namespace)

// For what is on its way when we are asked to end: well within the 30 s after which a pod is killed.
constexpr auto kDrain = std::chrono::seconds(8);

struct Flags {
  std::string kubeconfig;
  std::string ns = "loadline-system";
  std::string health_listen = "0.0.0.0:8081";
  std::string lease = "loadline-operator";
  std::string log_level = "info";
  bool leader_elect = true;
  int workers = 2;
};

int parse(int argc, char** argv, Flags& flags) {
  CLI::App app{"Loadline operator: places TrainingJobs, runs them as gangs and carries them through preemption"};
  app.set_version_flag("--version", "loadline-operator " LOADLINE_VERSION);
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "kubeconfig file; without it $KUBECONFIG, then the pod's own account");
  app.add_option("--namespace", flags.ns, "namespace of the Lease")->capture_default_str();
  app.add_option("--health-listen", flags.health_listen, "HOST:PORT of /healthz, /readyz and /metrics")
      ->capture_default_str();
  app.add_option("--leader-elect", flags.leader_elect, "work only while holding the Lease")->capture_default_str();
  app.add_option("--lease", flags.lease, "name of the Lease")->capture_default_str();
  app.add_option("--workers", flags.workers, "TrainingJobs looked at in parallel")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? -1 : 2;
  }
  return 0;
}

int run(const Flags& flags, const serve::EndSignals& signals) {
  auto config = kube::load_config({.kubeconfig = flags.kubeconfig});
  if (!config) {
    spdlog::error("{}", config.error().message);
    return 2;
  }
  const auto transport = kube::make_cpprest_transport(*config);
  // A connection of its own for the Lease, so that no burst of work delays a renewal.
  const auto lease_transport = kube::make_cpprest_transport(*config);
  if (!transport || !lease_transport) {
    spdlog::error("{}", (transport ? lease_transport : transport).error().message);
    return 2;
  }
  const std::string me = kube::process_identity();
  kube::Client client(*transport, {.field_manager = api::kFieldManager, .user_agent = "loadline-operator"});
  kube::Client lease_client(*lease_transport,
                            {.field_manager = api::kFieldManager, .user_agent = "loadline-operator/lease"});
  kube::EventRecorder events(client, {.instance = me});
  Caches caches(client);

  std::atomic<bool> lost{false};
  std::unique_ptr<kube::LeaderElector> elector;
  if (flags.leader_elect) {
    kube::LeaderOptions options;
    options.lease = {flags.ns, flags.lease};
    options.identity = me;
    options.on_started = [] { spdlog::info("leading"); };
    // At once: what waits to be sent again must not be sent when another may lead.
    options.on_stopped = [&lost, &client] {
      lost = true;
      client.shut_down();
    };
    options.on_new_leader = [](const std::string& holder) { spdlog::info("leader is {}", holder); };
    elector = std::make_unique<kube::LeaderElector>(lease_client, options);
  }
  const auto leading = [&elector] { return elector == nullptr || elector->is_leader(); };
  Controller controller(client, events, caches, {.workers = flags.workers, .may_write = leading});

  const auto registry = std::make_shared<Metrics>(client, events, controller, elector.get());
  serve::Server health({.name = "health", .listen = flags.health_listen, .metrics = registry},
                       serve::health_routes(
                           [&caches] {
                             const std::string missing = caches.missing();
                             return serve::Readiness{missing.empty(), "caches not complete: " + missing};
                           },
                           registry));
  if (Status started = health.start(); !started) {
    spdlog::error("health port {}: {}", flags.health_listen, started.error().message);
    return 2;
  }
  caches.start();
  events.start();
  if (elector) {
    if (Status started = elector->start(); !started) {
      spdlog::error("leader election: {}", started.error().message);
      return 2;
    }
  }

  bool working = false, stop = false;
  while (!stop && !lost) {
    stop = signals.wait_for(std::chrono::milliseconds(100));
    if (!working && !stop && caches.synced() && leading()) {
      spdlog::info("caches are complete; working with {} workers", flags.workers);
      controller.start();
      working = true;
    }
  }
  const bool lease_lost = lost && !stop;
  spdlog::info(lease_lost ? "lost the lease; ending" : "asked to end");
  {
    // A write that waits to be sent again would wait for a minute; the Lease is not to wait for it.
    const std::jthread cut([&client](const std::stop_token& drained) {
      if (kube::system_clock()->sleep_for(kDrain, drained)) client.shut_down();
    });
    controller.stop();
    events.stop();
  }
  client.shut_down();
  if (elector) elector->stop();
  lease_client.shut_down();
  caches.stop();
  health.stop(std::chrono::seconds(2));
  return lease_lost ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  if (const int rc = parse(argc, argv, flags); rc != 0) return rc < 0 ? 0 : rc;
  // Otherwise each of two dozen threads keeps an arena as large as the largest answer it ever read.
  mallopt(M_ARENA_MAX, 2);          // NOLINT(concurrency-mt-unsafe): no other thread is there yet
  const serve::EndSignals signals;  // before any thread, so that all inherit it
  kube::start_transport_io();
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  const int rc = run(flags, signals);
  spdlog::shutdown();
  // Threads of the HTTP library may still run; static destructors would race with them.
  std::_Exit(rc);
}
