#include "kube/leader.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "kube/fault.h"
#include "kube/lease.h"
#include "kube/retry.h"

namespace loadline::kube {

using std::chrono::milliseconds;

std::string process_identity() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host.front() = '\0';
  return std::string(host.data()) + "_" + std::to_string(getpid()) + "_" +
         std::to_string(static_cast<unsigned>(random_unit() * 1e9));
}

struct LeaderElector::Impl {
  Impl(Client& the_client, LeaderOptions the_options) : client(the_client), options(std::move(the_options)) {}

  void run(const std::stop_token& stop) {
    if (!acquire(stop)) {
      // What was won too slowly to begin with is given back all the same.
      if (time_left() > Clock::Duration::zero()) tell("the release", [this] { release(); });
      return;
    }
    set_leading(true);
    metrics.transitions.add();
    metrics.leading.set(1);
    spdlog::info("leading: {} holds lease {}", options.identity, to_string(options.lease));
    const bool started = tell("on_started", [this] {
      if (options.on_started) options.on_started();
    });
    if (started) hold(stop);
    end(stop.stop_requested() || !started);
  }

  /// Runs a callback; false when it threw.
  bool tell(const char* what, const std::function<void()>& callback) {
    const std::string fault = fault_of(callback);
    if (!fault.empty()) spdlog::error("leader election: {} failed: {}", what, fault);
    return fault.empty();
  }

  /// Tries until it holds the lease; false when stopped first.
  bool acquire(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      // A lease won so slowly that no time is left to renew it is tried for again, which is then a renewal.
      if (try_once(stop) && time_left() > options.retry_period) return true;
      // Spread, so that candidates do not come in step.
      const auto wait = milliseconds(
          static_cast<std::int64_t>(static_cast<double>(options.retry_period.count()) * (1 + 1.2 * random_unit())));
      options.clock->sleep_for(wait, stop);
    }
    return false;
  }

  /// Renews until it cannot, or is stopped.
  void hold(const std::stop_token& stop) {
    while (options.clock->sleep_for(std::min(next_try - options.clock->now(), time_left()), stop)) {
      if (time_left() <= Clock::Duration::zero()) return;
      if (!try_once(stop) && lost_to_another()) return;
    }
  }

  void end(bool release_it) {
    const bool was_leader = is_leader();
    set_leading(false);
    metrics.leading.set(0);
    metrics.transitions.add();
    if (!release_it || !was_leader) spdlog::error("lost lease {}: not renewed in time", to_string(options.lease));
    // First stop the work, then let another begin it.
    tell("on_stopped", [this] {
      if (options.on_stopped) options.on_stopped();
    });
    if (release_it && was_leader) tell("the release", [this] { release(); });
  }

  bool try_once(const std::stop_token& stop) {
    const Clock::Time began = options.clock->now();
    // Nothing is renewed any more by a write as old as this.
    std::erase_if(unanswered, [&](const Write& one) { return one.began + options.renew_deadline <= began; });
    bool won = false;
    // An exception (want of memory) is one more failure to renew, and counts towards the deadline like any other.
    tell("a try", [&] { won = renew_fast(stop) || look_and_take(stop); });
    if (!won) metrics.failures.add();
    // Tries begin a retry period apart however long they take, or slow ones would leave no time for the next.
    next_try = (won ? renewed_at() : began) + options.retry_period;
    return won;
  }

  /// One try, for the loop tries again. A leader's call gets five eighths of the time that is left: of the 8 s at the
  /// first try the 5 s that client-go's controllers allow, and what remains is enough to look what became of it.
  CallOptions call_options(const std::stop_token& stop) const {
    const Clock::Duration most = leading ? time_left() * 5 / 8 : options.renew_deadline / 2;
    CallOptions call;
    call.timeout = std::max(std::chrono::duration_cast<milliseconds>(most), milliseconds(1));
    call.stop = stop;
    call.once = true;
    return call;
  }

  /// While the record is as we left it: writes over that version without reading.
  bool renew_fast(const std::stop_token& stop) {
    if (observation.record.holder != options.identity || !unanswered.empty()) return false;
    const LeaseRecord known = observation.record;
    return write(known, stop);
  }

  bool look_and_take(const std::stop_token& stop) {
    const Answer<Object> found = client.get(resources::kLeases, options.lease, call_options(stop));
    if (!found && found.error().not_found()) return write({}, stop);
    if (!found) {
      spdlog::warn("lease {}: {}", to_string(options.lease), found.error().message);
      return false;
    }
    observe(read_lease(*found));
    if (const auto began = began_to_write(observation.record)) {
      renew(*began);
      return true;
    }
    if (!may_take(observation, options.identity, options.clock->now(), options.lease_duration)) return false;
    return write(observation.record, stop);
  }

  /// Over a record that was read, or creates it.
  bool write(const LeaseRecord& over, const std::stop_token& stop) {
    const LeaseRecord next = next_record(over, options.identity, options.lease_duration, options.clock->wall());
    const nlohmann::json lease = lease_object(options.lease, next);
    // Time counts from before the request: others see the change only after.
    const Clock::Time began = options.clock->now();
    unanswered.push_back({next, began});
    const Answer<Object> written = over.resource_version.empty()
                                       ? client.create(resources::kLeases, lease, {}, call_options(stop))
                                       : client.update(resources::kLeases, lease, {}, call_options(stop));
    if (!written) {
      spdlog::warn("lease {}: {}", to_string(options.lease), written.error().message);
      if (!written.error().outcome_unknown) unanswered.pop_back();
      return false;
    }
    observe(read_lease(*written));
    renew(began);
    return true;
  }

  /// When we began to write `record`, if it is a write of ours whose answer was lost.
  std::optional<Clock::Time> began_to_write(const LeaseRecord& record) const {
    for (const Write& one : unanswered) {
      if (say_the_same(one.record, record)) return one.began;
    }
    return std::nullopt;
  }

  void renew(Clock::Time began) {
    unanswered.clear();
    const std::lock_guard lock(mutex);
    renewed = began;
  }

  void observe(const LeaseRecord& record) {
    const bool new_holder = record.holder != observation.record.holder;
    if (record != observation.record || observation.seen_at == Clock::Time{}) {
      observation = {record, options.clock->now()};
    }
    {
      const std::lock_guard lock(mutex);
      holder = record.holder;
    }
    if (!new_holder || record.holder.empty() || !options.on_new_leader) return;
    tell("on_new_leader", [&] { options.on_new_leader(record.holder); });
  }

  bool lost_to_another() const { return observation.record.holder != options.identity; }

  void release() {
    constexpr int kTries = 3;
    CallOptions call;
    call.timeout = std::chrono::seconds(2);
    for (int i = 0; i < kTries; ++i) {
      LeaseRecord free = observation.record;
      if (free.holder != options.identity) return;
      free.holder.clear();
      free.duration_seconds = 1;
      free.renew_time = options.clock->wall();
      const Answer<Object> written = client.update(resources::kLeases, lease_object(options.lease, free), {}, call);
      if (written) return;
      const Answer<Object> found = client.get(resources::kLeases, options.lease, call);
      if (found) observe(read_lease(*found));
    }
  }

  bool is_leader() const {
    const std::lock_guard lock(mutex);
    return leading && options.clock->now() < renewed + options.renew_deadline;
  }

  void set_leading(bool now) {
    const std::lock_guard lock(mutex);
    leading = now;
  }

  Clock::Time renewed_at() const {
    const std::lock_guard lock(mutex);
    return renewed;
  }

  /// Until the renew deadline.
  Clock::Duration time_left() const { return renewed_at() + options.renew_deadline - options.clock->now(); }

  struct Write {
    LeaseRecord record;
    Clock::Time began;
  };

  Client& client;
  const LeaderOptions options;
  LeaderMetrics metrics;
  // Of the elector's thread alone.
  LeaseObservation observation;
  std::vector<Write> unanswered;  // oldest first; any of them may have been carried out
  Clock::Time next_try;

  mutable std::mutex mutex;
  bool leading = false;  // written by the elector's thread alone
  Clock::Time renewed;
  std::string holder;

  std::jthread thread;
};

LeaderElector::LeaderElector(Client& client, LeaderOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(options))) {}
LeaderElector::~LeaderElector() { stop(); }

Status LeaderElector::start() {
  const LeaderOptions& o = impl_->options;
  if (o.identity.empty() || o.lease.name.empty() || o.lease.ns.empty()) {
    return Error::make(Error::Code::Invalid, "leader election needs an identity and the namespace and name of a lease");
  }
  if (o.lease_duration <= o.renew_deadline || 10 * o.renew_deadline <= 12 * o.retry_period ||
      o.retry_period.count() < 1) {
    return Error::make(Error::Code::Invalid,
                       "leader election: lease duration > renew deadline > 1.2 x retry period must hold");
  }
  if (!impl_->thread.joinable()) {
    impl_->thread = std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->run(stop); });
  }
  return {};
}

void LeaderElector::stop() {
  if (!impl_->thread.joinable()) return;
  impl_->thread.request_stop();
  impl_->thread.join();
}

bool LeaderElector::is_leader() const { return impl_->is_leader(); }
std::string LeaderElector::holder() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->holder;
}
const LeaderMetrics& LeaderElector::metrics() const { return impl_->metrics; }

}  // namespace loadline::kube
