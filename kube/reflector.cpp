#include "kube/reflector.h"

#include <spdlog/spdlog.h>

#include <thread>

#include "kube/fault.h"
#include "kube/list_watch.h"

namespace loadline::kube {
namespace {

constexpr auto kAfterFault = std::chrono::seconds(30);

}  // namespace

struct Reflector::Impl {
  Impl(Client& client, Store& store, ReflectorOptions the_options)
      : options(std::move(the_options)), loop(client, store, options, metrics) {}

  void run(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { loop.cancel(); });
    while (!stop.stop_requested()) {
      std::chrono::milliseconds wait = kAfterFault;
      // Want of memory, most likely. The copy must go on being kept, and may lack what the step was about.
      const std::string fault = fault_of([&] { wait = loop.step(stop); });
      if (!fault.empty()) {
        spdlog::error("reflector: {}", fault);
        loop.start_over();
      }
      if (wait.count() > 0 && !options.clock->sleep_for(wait, stop)) break;
    }
    loop.start_over();  // gives the connection up
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

bool Reflector::in_touch() const { return impl_->metrics.in_touch.value() != 0; }

std::chrono::milliseconds Reflector::last_event_age() const {
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(impl_->options.clock->now().time_since_epoch());
  return now - std::chrono::milliseconds(impl_->metrics.last_event_ms.value());
}

}  // namespace loadline::kube
