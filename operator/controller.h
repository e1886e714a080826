// The shell around decide(): watches wake jobs, workers observe, decide and act, one job at a time per worker.
//
// Rules it keeps:
//   - nothing is decided before every cache is complete, and nothing written while we do not lead;
//   - a job is not decided on before the caches have seen our own last writes of its children;
//   - a decision that claims GPUs is made and written under one lock, from facts read under it, so that two jobs are
//     never promised the same ones by this process. Another process is kept out by the Lease; should it slip through,
//     pods that find no room end their attempt at its start deadline.
//
// Thread-safety: all members from any thread. Owns its worker threads; see Options for what must outlive it.
#pragma once

#include <memory>
#include <string>

#include "kube/client.h"
#include "kube/events.h"
#include "kube/metrics.h"
#include "operator/caches.h"

namespace loadline::controller {

class Controller {
 public:
  struct Options {
    int workers = 2;
    std::function<bool()> may_write;  ///< whether we lead
  };

  /// Client, recorder and caches must outlive it. Subscribes to the caches: construct it before they start.
  Controller(kube::Client& client, kube::EventRecorder& events, Caches& caches, Options options);
  /// stop().
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  /// Begins to work on everything there is. Call when the caches are synced and we lead.
  void start();
  /// Lets the reconciles on their way end, at most a few seconds, and joins the workers. Idempotent.
  void stop();

  [[nodiscard]] const kube::QueueMetrics& job_queue_metrics() const;
  [[nodiscard]] const kube::Counter& reconciles() const;
  [[nodiscard]] const kube::Counter& errors() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loadline::controller
