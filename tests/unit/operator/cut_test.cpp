// The process dies after any single write, and starts again: the end must be the same, and every child made once.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

using std::chrono::seconds;

struct Scenario {
  const char* name;
  std::function<World()> start;
  std::function<void(World&)> play;
};

void run(World& world) {
  world.settle();
  world.run_gangs();
  world.settle();
}

json with_retain(const char* retain) {
  json job = llama();
  job["spec"]["checkpoint"]["volume"]["retain"] = retain;
  return job;
}

void preempt(World& world) {
  run(world);
  world.pass(seconds(600));
  world.reclaim_node("spot-0");
  world.settle();
  world.end_deleted_pods();
  run(world);
}

std::vector<Scenario> scenarios() {
  return {
      {"plain run", [] { return two_pools_and_a_job(); },
       [](World& w) {
         run(w);
         w.finish_gang("llama-a1");
         w.settle();
       }},
      {"preemption", [] { return two_pools_and_a_job(); },
       [](World& w) {
         preempt(w);
         w.finish_gang("llama-a2");
         w.settle();
       }},
      {"two preemptions", [] { return two_pools_and_a_job(); },
       [](World& w) {
         preempt(w);
         w.pass(seconds(6000));
         w.add_node("spot-0", a100_labels("spot", true));
         w.reclaim_node("steady-0");
         w.settle();
         w.end_deleted_pods();
         w.pass(seconds(60));
         run(w);
       }},
      {"suspend and resume", [] { return two_pools_and_a_job(); },
       [](World& w) {
         run(w);
         w.edit_spec(resources::kTrainingJobs, w.job_key, {{"suspend", true}});
         w.settle();
         w.end_deleted_pods();
         w.settle();
         w.edit_spec(resources::kTrainingJobs, w.job_key, {{"suspend", false}});
         run(w);
       }},
      {"failure and retry", [] { return two_pools_and_a_job(); },
       [](World& w) {
         run(w);
         w.fail_gang("llama-a1", 1, "ValueError");
         w.settle();
         w.pass(seconds(30));
         run(w);
       }},
      {"failures to the limit", [] { return two_pools_and_a_job(); },
       [](World& w) {
         for (int i = 1; i <= 3; ++i) {
           run(w);
           w.fail_gang("llama-a" + std::to_string(i), 1, "ValueError");
           w.settle();
           w.pass(seconds(60));
         }
         w.settle();
       }},
      {"delete while running", [] { return two_pools_and_a_job(with_retain("Delete")); },
       [](World& w) {
         run(w);
         w.remove(resources::kTrainingJobs, w.job_key);
         w.settle();
         w.end_deleted_pods();
         w.settle();
       }},
  };
}

std::map<std::string, int> times_created(const World& world) {
  std::map<std::string, int> times;
  for (const std::string& name : world.created) ++times[name];
  return times;
}

TEST(Cut, AfterAnyWriteLeadsToTheSameEndWithEveryChildMadeOnce) {
  int cuts = 0;
  for (const Scenario& scenario : scenarios()) {
    World reference = scenario.start();
    scenario.play(reference);
    ASSERT_GT(reference.writes, 3) << scenario.name;
    for (int cut = 1; cut <= reference.writes; ++cut, ++cuts) {
      World world = scenario.start();
      world.cut_after = cut;
      scenario.play(world);
      ASSERT_EQ(json::diff(reference.end_state(), world.end_state()), json::array())
          << scenario.name << ", cut after write " << cut;
      ASSERT_EQ(times_created(world), times_created(reference)) << scenario.name << ", cut after write " << cut;
    }
  }
  std::cout << "cut points: " << cuts << "\n";
  EXPECT_GE(cuts, 50);
}

/// A stale cache shows the world before our last write: whatever is decided from it must do no harm.
TEST(Stale, DecisionsDoNotBreakWhatWasWrittenSince) {
  for (const Scenario& scenario : scenarios()) {
    World world = scenario.start();
    const auto seen_before = observe(world, cluster_facts(world, world.now), world.job_key, world.now);
    scenario.play(world);
    const json end = world.end_state();
    for (const Action& action : decide(*seen_before).actions) {
      if (!world.carry_out(action)) break;
    }
    EXPECT_EQ(world.end_state().size(), end.size()) << scenario.name;
  }
}

}  // namespace
}  // namespace loadline::controller
