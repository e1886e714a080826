#include "operator/metrics.h"

#include <prometheus/metric_family.h>

namespace loadline::controller {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily counter(const char* name, const char* help, std::uint64_t value) {
  ClientMetric metric;
  metric.counter.value = static_cast<double>(value);
  return {name, help, MetricType::Counter, {metric}};
}

MetricFamily gauge(const char* name, const char* help, std::int64_t value) {
  ClientMetric metric;
  metric.gauge.value = static_cast<double>(value);
  return {name, help, MetricType::Gauge, {metric}};
}

}  // namespace

std::vector<MetricFamily> Metrics::Collect() const {
  const kube::ClientMetrics& c = client_.metrics();
  const kube::QueueMetrics& q = controller_.job_queue_metrics();
  const kube::EventMetrics& e = events_.metrics();
  std::vector<MetricFamily> families = prometheus::Registry::Collect();
  const std::vector<MetricFamily> ours = {
      counter("loadline_operator_reconciles_total", "Decisions made on TrainingJobs.",
              controller_.reconciles().value()),
      counter("loadline_operator_errors_total", "Decisions that could not be carried out.",
              controller_.errors().value()),
      counter("loadline_api_requests_total", "Requests sent to the API server, retries included.", c.requests.value()),
      counter("loadline_api_failures_total", "Requests that ended in an error.", c.failures.value()),
      counter("loadline_api_retries_total", "Requests sent again.", c.retries.value()),
      counter("loadline_api_throttled_total", "Requests that waited for the client's own limit.", c.throttled.value()),
      gauge("loadline_queue_depth", "TrainingJobs ready to be looked at.", q.depth.value()),
      gauge("loadline_queue_delayed", "TrainingJobs to be looked at later.", q.delayed.value()),
      counter("loadline_queue_retries_total", "TrainingJobs put back with back-off.", q.retries.value()),
      counter("loadline_events_written_total", "Events written.", e.written.value()),
      counter("loadline_events_dropped_total", "Events lost.", e.dropped.value()),
      gauge("loadline_leading", "1 while this process holds the lease.",
            leader_ == nullptr ? 1 : leader_->metrics().leading.value()),
  };
  families.insert(families.end(), ours.begin(), ours.end());
  return families;
}

}  // namespace loadline::controller
