// The process dies after any single write, and starts again: the end must be the same, and every child made once.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;

/// What Kubernetes, the cloud and the user do, one thing after another; after each the operator comes to rest.
struct Scenario {
  const char* name;
  World start;
  std::vector<std::function<void(World&)>> events;
};

using Events = std::vector<std::function<void(World&)>>;

json with_retain(const char* retain) {
  json job = llama();
  job["spec"]["checkpoint"]["volume"]["retain"] = retain;
  return job;
}

void nothing(World& /*w*/) {}
void gangs_run(World& w) { w.run_gangs(); }
void pods_end(World& w) { w.end_deleted_pods(); }
void a_minute_passes(World& w) { w.pass(seconds(60)); }

std::function<void(World&)> reclaimed(const char* node) {
  return [node](World& w) {
    w.pass(seconds(600));
    w.reclaim_node(node);
  };
}
std::function<void(World&)> suspended(bool value) {
  return [value](World& w) { w.edit_spec(resources::kTrainingJobs, w.job_key, {{"suspend", value}}); };
}
std::function<void(World&)> finished(const char* gang) {
  return [gang](World& w) { w.finish_gang(gang); };
}
std::function<void(World&)> failed(const char* gang) {
  return [gang](World& w) { w.fail_gang(gang, 1, "ValueError"); };
}
void spot_comes_back_and_steady_goes(World& w) {
  w.pass(seconds(6000));
  w.add_node("spot-0", a100_labels("spot", true));
  w.reclaim_node("steady-0");
}
void deleted(World& w) { w.remove(resources::kTrainingJobs, w.job_key); }

std::vector<Scenario> scenarios() {
  const Events preempted = {nothing, gangs_run, reclaimed("spot-0"), pods_end, gangs_run};
  const auto then = [](Events events, const Events& more) {
    events.insert(events.end(), more.begin(), more.end());
    return events;
  };
  const World world = two_pools_and_a_job();
  return {
      {"plain run", world, {nothing, gangs_run, finished("llama-a1")}},
      {"preemption", world, then(preempted, {finished("llama-a2")})},
      {"two preemptions", world,
       then(preempted, {spot_comes_back_and_steady_goes, pods_end, a_minute_passes, gangs_run})},
      {"suspend and resume", world, {nothing, gangs_run, suspended(true), pods_end, suspended(false), gangs_run}},
      {"failure and retry", world, {nothing, gangs_run, failed("llama-a1"), a_minute_passes, gangs_run}},
      {"failures to the limit",
       world,
       {nothing, gangs_run, failed("llama-a1"), a_minute_passes, gangs_run, failed("llama-a2"), a_minute_passes,
        gangs_run, failed("llama-a3"), a_minute_passes}},
      {"delete while running", two_pools_and_a_job(with_retain("Delete")), {nothing, gangs_run, deleted, pods_end}},
  };
}

std::map<std::string, int> times_created(const World& world) {
  std::map<std::string, int> times;
  for (const std::string& name : world.created) ++times[name];
  return times;
}

void play(World& world, const Events& events, std::size_t from = 0) {
  for (std::size_t i = from; i < events.size(); ++i) {
    events[i](world);
    world.settle();
  }
}

/// The world right after a write, in which the process has died: what it had in mind is not in there.
struct Cut {
  World world;
  std::size_t event;  ///< what had happened last
};

/// Plays a scenario to its end, and gives the cut after each of its writes.
std::vector<Cut> play_and_cut(World& world, const Events& events) {
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < events.size(); ++i) {
    world.after_write = [&cuts, i](const World& now) { cuts.push_back({now, i}); };
    events[i](world);
    world.settle();
  }
  return cuts;
}

TEST(Cut, AfterAnyWriteLeadsToTheSameEndWithEveryChildMadeOnce) {
  std::size_t points = 0;
  for (const Scenario& scenario : scenarios()) {
    World reference = scenario.start;
    std::vector<Cut> cuts = play_and_cut(reference, scenario.events);
    ASSERT_GT(cuts.size(), 3U) << scenario.name;
    const json end = reference.end_state();
    const auto made = times_created(reference);
    for (Cut& cut : cuts) {
      ++points;
      cut.world.after_write = nullptr;
      cut.world.settle();
      play(cut.world, scenario.events, cut.event + 1);
      const std::string where = scenario.name + (", cut after write " + std::to_string(&cut - cuts.data() + 1));
      ASSERT_EQ(json::diff(end, cut.world.end_state()), json::array()) << where;
      ASSERT_EQ(times_created(cut.world), made) << where;
    }
  }
  std::cout << "cut points: " << points << "\n";
  EXPECT_GE(points, 50U);
}

/// A stale cache shows the world before our last write: whatever is decided from it must do no harm.
TEST(Stale, DecisionsDoNotBreakWhatWasWrittenSince) {
  for (const Scenario& scenario : scenarios()) {
    World world = scenario.start;
    const auto seen_before = observe(
        world, [&] { return cluster_facts(world, world.now); }, world.job_key, world.now);
    play(world, scenario.events);
    const json end = world.end_state();
    for (const Action& action : decide(*seen_before).actions) {
      if (!world.carry_out(action)) break;
    }
    EXPECT_EQ(world.end_state().size(), end.size()) << scenario.name;
  }
}

}  // namespace
}  // namespace loadline::controller
