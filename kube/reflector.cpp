#include "kube/reflector.h"

#include <spdlog/spdlog.h>

#include <thread>

#include "kube/list_watch.h"

namespace loadline::kube {

struct Reflector::Impl {
  Impl(Client& client, Store& store, ReflectorOptions the_options)
      : options(std::move(the_options)), loop(client, store, options, metrics) {}

  void run(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { loop.cancel(); });
    while (!stop.stop_requested()) {
      std::chrono::milliseconds wait = std::chrono::seconds(30);
      try {
        wait = loop.step(stop);
      } catch (const std::exception& e) {
        // Nothing of ours throws but for want of memory, or a listener's fault; the copy must go on being kept.
        spdlog::error("reflector: {}", e.what());
      }
      if (wait.count() > 0 && !options.clock->sleep_for(wait, stop)) return;
    }
  }

  const ReflectorOptions options;
  ReflectorMetrics metrics;
  ListWatch loop;
  std::jthread thread;
};

Reflector::Reflector(Client& client, Store& store, ReflectorOptions options)
    : impl_(std::make_unique<Impl>(client, store, std::move(options))) {}
Reflector::~Reflector() { stop(); }

void Reflector::start() {
  if (impl_->thread.joinable()) return;
  impl_->thread = std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->run(stop); });
}

void Reflector::stop() {
  if (!impl_->thread.joinable()) return;
  impl_->thread.request_stop();
  impl_->thread.join();
}

const ReflectorMetrics& Reflector::metrics() const { return impl_->metrics; }

std::chrono::milliseconds Reflector::last_event_age() const {
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(impl_->options.clock->now().time_since_epoch());
  return now - std::chrono::milliseconds(impl_->metrics.last_event_ms.value());
}

}  // namespace loadline::kube
