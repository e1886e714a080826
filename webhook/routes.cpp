#include "webhook/routes.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/gpu_pool.h"
#include "api/placement_policy.h"
#include "api/training_job.h"
#include "kube/json_read.h"
#include "webhook/admission.h"
#include "webhook/review.h"

namespace loadline::webhook {
namespace {

using nlohmann::json;
using serve::Response;

/// Values in a review; each takes 100 bytes and more, and some parts are copied while it is judged. A pod template with
/// a thousand environment variables is 10,000 of them, managedFields included, and an update has it twice.
constexpr std::size_t kMaxValues = 100'000;

class ReviewMetrics {
 public:
  explicit ReviewMetrics(prometheus::Registry& registry)
      : reviews_(prometheus::BuildCounter()
                     .Name("loadline_webhook_reviews_total")
                     .Help("Admission reviews by webhook, kind and verdict.")
                     .Register(registry)),
        seconds_(prometheus::BuildHistogram()
                     .Name("loadline_webhook_review_seconds")
                     .Help("Time to answer an admission review.")
                     .Register(registry)) {}

  void record(const std::string& webhook, const std::string& kind, std::string_view verdict, double seconds) {
    reviews_.Add({{"webhook", webhook}, {"kind", known(kind)}, {"verdict", std::string(verdict)}}).Increment();
    seconds_
        .Add({{"webhook", webhook}},
             prometheus::Histogram::BucketBoundaries{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5})
        .Observe(seconds);
  }

 private:
  /// A label's values are a closed set: what a peer sends does not become one.
  static std::string known(const std::string& kind) {
    const bool ours =
        kind == api::TrainingJob::kKind || kind == api::GPUPool::kKind || kind == api::PlacementPolicy::kKind;
    return ours ? kind : "other";
  }

  prometheus::Family<prometheus::Counter>& reviews_;
  prometheus::Family<prometheus::Histogram>& seconds_;
};

void log_verdict(const std::string& webhook, const Request& request, const Verdict& verdict) {
  if (verdict.allowed()) {
    spdlog::debug("{} {} {}/{}: allowed, {} warnings", webhook, request.kind, request.namespaceName, request.name,
                  verdict.warnings.size());
    return;
  }
  spdlog::info("{} {} {}/{}: {}, {}{}", webhook, request.kind, request.namespaceName, request.name,
               to_string(verdict.kind), verdict.causes.empty() ? verdict.message : to_string(verdict.causes.front()),
               request.dry_run ? " (dry run)" : "");
}

using Judge = std::function<Verdict(const Request&)>;

Response answer(const std::string& webhook, const serve::Request& http, const Judge& judge, ReviewMetrics& metrics) {
  const auto begin = std::chrono::steady_clock::now();
  if (!http.content_type.starts_with("application/json")) return {415, "want application/json\n"};
  const Result<json> review = kube::parse_json_within(kMaxValues, http.body);
  if (!review) return {400, review.error().message + "\n"};
  const Result<Request> request = read_review(*review);
  if (!request) return {400, request.error().message + "\n"};
  const Verdict verdict = judge(*request);
  std::string body = review_response(*request, verdict).dump(-1, ' ', false, json::error_handler_t::replace);
  log_verdict(webhook, *request, verdict);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  metrics.record(webhook, request->kind, to_string(verdict.kind), took.count());
  return {200, std::move(body), "application/json"};
}

}  // namespace

std::vector<serve::Route> review_routes(std::function<std::shared_ptr<const Snapshot>()> snapshot,
                                        prometheus::Registry& registry) {
  const auto metrics = std::make_shared<ReviewMetrics>(registry);
  const auto route = [metrics](const std::string& webhook, const Judge& judge) {
    return serve::Route{
        serve::Method::Post, "/" + webhook, serve::Run::OnWorker,
        [webhook, judge, metrics](const serve::Request& http) { return answer(webhook, http, judge, *metrics); }};
  };
  return {route("mutate", [](const Request& request) { return mutate(request); }),
          route("validate",
                [snapshot = std::move(snapshot)](const Request& request) { return validate(request, *snapshot()); })};
}

}  // namespace loadline::webhook
