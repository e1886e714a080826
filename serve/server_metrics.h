// What a server counts of itself. Internal to serve/.
//
// Thread-safety: all members from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace prometheus {
class Counter;
class Gauge;
class Registry;
template <class T>
class Family;
}  // namespace prometheus

namespace loadline::serve {

class ServerMetrics {
 public:
  /// A null registry counts into one of its own.
  ServerMetrics(std::string server, std::shared_ptr<prometheus::Registry> registry);

  void set_connections(std::size_t open);
  /// A connection closed because there were too many.
  void refused();
  /// An idle connection closed because there were too many.
  void displaced();
  void handshake_failed();
  /// `step`: handshake, idle, header, body, handler, write.
  void timed_out(std::string_view step);
  void answered(int status);

 private:
  std::string server_;
  std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Gauge& connections_;
  prometheus::Counter& refused_;
  prometheus::Counter& displaced_;
  prometheus::Counter& handshakes_failed_;
  prometheus::Family<prometheus::Counter>& timeouts_;
  prometheus::Family<prometheus::Counter>& answers_;
};

}  // namespace loadline::serve
