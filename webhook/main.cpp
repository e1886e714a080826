// loadline-webhook: the admission server. Wires configuration, caches, certificates and two servers together, and ends
// them in order: readiness off, a grace in which endpoints forget us, the requests on their way, then the rest.
#include <prometheus/registry.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "estimator/tables.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/cpprest_transport.h"
#include "kube/events.h"
#include "kube/leader.h"
#include "placement/tables.h"
#include "serve/health.h"
#include "serve/server.h"
#include "serve/signals.h"
#include "webhook/cluster_view.h"
#include "webhook/gauges.h"
#include "webhook/keeper.h"
#include "webhook/routes.h"

namespace {

using namespace loadline;
using namespace std::chrono_literals;

struct Flags {
  std::string kubeconfig, webhook_url;
  std::string listen = "0.0.0.0:9443", health_listen = "0.0.0.0:8081";
  std::string ns = "loadline-system", service = "loadline-webhook";
  std::string secret = "loadline-webhook-tls", registration = "loadline";
  std::string log_level = "info";
  int grace_seconds = 3;
};

void declare(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", "loadline-webhook " LOADLINE_VERSION);
  app.add_option("--kubeconfig", flags.kubeconfig, "kubeconfig file; without it as kubectl finds one, or in-cluster");
  app.add_option("--listen", flags.listen, "address of the HTTPS port")->capture_default_str();
  app.add_option("--health-listen", flags.health_listen, "address of /healthz, /readyz and /metrics")
      ->capture_default_str();
  app.add_option("--namespace", flags.ns, "namespace of the Service and the Secret")->capture_default_str();
  app.add_option("--service", flags.service, "Service the API server calls")->capture_default_str();
  app.add_option("--webhook-url", flags.webhook_url, "URL the API server calls instead of the Service");
  app.add_option("--secret", flags.secret, "Secret that keeps the certificates")->capture_default_str();
  app.add_option("--registration", flags.registration, "name of both webhook configurations")->capture_default_str();
  app.add_option("--shutdown-grace", flags.grace_seconds, "seconds between readiness off and the end")
      ->capture_default_str()
      ->check(CLI::Range(0, 300));
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
}

/// Calls round() until it is told to end: soon again after a failure, each minute after a success.
class CertificateLoop {
 public:
  explicit CertificateLoop(webhook::CertificateKeeper& keeper)
      : thread_([this, &keeper](const std::stop_token& stop) { run(keeper, stop); }) {}

 private:
  void run(webhook::CertificateKeeper& keeper, const std::stop_token& stop) {
    std::chrono::milliseconds pause = 500ms;
    while (!stop.stop_requested()) {
      const Status round = keeper.round();
      if (!round) spdlog::warn("certificates: {}", round.error().message);
      pause = round ? 60s : std::min<std::chrono::milliseconds>(2 * pause, 30s);
      std::unique_lock lock(mutex_);
      ended_.wait_for(lock, stop, pause, [] { return false; });
    }
  }

  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

int fail(const Error& error) {
  spdlog::error("{}", error.message);
  return 1;
}

int serve_until_signal(const Flags& flags, kube::Client& client, const serve::EndSignals& signals) {
  const auto registry = std::make_shared<prometheus::Registry>();
  const auto certificate = std::make_shared<serve::ServedCertificate>();
  webhook::ClusterView view(client);
  kube::EventRecorder events(client, {.controller = "loadline.dev/webhook", .instance = kube::process_identity()});
  webhook::CertificateKeeper keeper(
      client, *certificate,
      {.ns = flags.ns,
       .secret = flags.secret,
       .registration = flags.registration,
       .names = webhook::server_names(flags.service, flags.ns, flags.webhook_url),
       .now = [] { return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()); },
       .warn =
           [&events, &flags](const std::string& words) {
             events.record({"v1", "Secret", flags.ns, flags.secret, "", ""},
                           {kube::Event::Type::Warning, "CertificateNotRenewed", "Renew", words});
           }});
  std::atomic<bool> ending{false};

  serve::Server health({.name = "health", .listen = flags.health_listen, .metrics = registry},
                       serve::health_routes(
                           [&]() -> serve::Readiness {
                             if (ending) return {false, "ending"};
                             if (!keeper.serving()) return {false, "no certificate is served yet"};
                             const std::string missing = view.waiting_for();
                             return {missing.empty(), missing};
                           },
                           registry));
  serve::Server server({.name = "webhook",
                        .listen = flags.listen,
                        .certificate = certificate,
                        .metrics = registry,
                        .io_threads = 2,
                        .workers = 2},
                       webhook::review_routes([&view] { return view.snapshot(); }, *registry));
  // Read before anybody asks: the first request has its deadline too.
  (void)estimator::Tables::builtin();
  (void)placement::CloudTables::builtin();
  if (Status started = health.start(); !started) return fail(started.error());
  if (Status started = server.start(); !started) return fail(started.error());
  view.start();
  events.start();
  webhook::Gauges gauges(*registry);
  {
    const CertificateLoop certificates(keeper);
    spdlog::info("listening on {} (health on {})", flags.listen, flags.health_listen);
    while (!signals.wait_for(1s)) gauges.refresh(view, keeper);
    spdlog::info("ending: readiness off, {} s for the endpoints to forget us", flags.grace_seconds);
    ending = true;
    server.begin_drain();
    std::this_thread::sleep_for(std::chrono::seconds(flags.grace_seconds));
    if (!server.stop(10s)) spdlog::warn("some requests did not end in time and were cut off");
    events.stop();
    client.shut_down();
  }
  view.stop();
  health.stop(1s);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Loadline's admission webhook");
  Flags flags;
  declare(app, flags);
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  spdlog::flush_on(spdlog::level::info);
  const serve::EndSignals signals;  // before any thread, so that all inherit it
  kube::start_transport_io();

  kube::ConfigOptions options;
  options.kubeconfig = flags.kubeconfig;
  const auto config = kube::load_config(options);
  if (!config) return fail(config.error());
  const auto transport = kube::make_cpprest_transport(*config);
  if (!transport) return fail(transport.error());
  int code = 1;
  {
    kube::Client client(*transport, {.field_manager = "loadline-webhook", .user_agent = "loadline-webhook"});
    code = serve_until_signal(flags, client, signals);
  }
  spdlog::shutdown();
  // The HTTP client's threads cannot be joined; what matters has ended.
  _exit(code);
}
