#include "kube/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/kube/objects.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

std::vector<std::string> names(const std::vector<Object>& objects) {
  std::vector<std::string> out;
  for (const Object& object : objects) out.push_back(to_string(object.key()));
  return out;
}

std::string text(const Change& change) {
  const auto version = [](const Object& object) {
    return object ? object.uid() + "@" + object.resource_version() : "-";
  };
  return to_string(change.key) + " " + version(change.before) + " -> " + version(change.after);
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    subscription_ = store_.listen([this](const Change& change) { changes_.push_back(text(change)); });
  }
  std::vector<std::string> changes() { return std::exchange(changes_, {}); }

  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  Store store_{resources::kPods, {}, clock_};
  std::vector<std::string> changes_;
  Subscription subscription_;
};

TEST_F(StoreTest, FindsByKeyNamespaceAndOwner) {
  store_.replace(
      {pod("b", "q", "3", "u3", "job-1"), pod("a", "p", "1", "u1", "job-1"), pod("a", "r", "2", "u2", "job-2")}, "10");
  EXPECT_EQ(store_.get({"a", "p"}).uid(), "u1");
  EXPECT_FALSE(store_.get({"a", "nobody"}));
  EXPECT_THAT(names(store_.list()), ElementsAre("a/p", "a/r", "b/q"));
  EXPECT_THAT(names(store_.list_namespace("a")), ElementsAre("a/p", "a/r"));
  EXPECT_THAT(names(store_.list_owned_by("job-1")), ElementsAre("a/p", "b/q"));
  EXPECT_TRUE(store_.list_owned_by("nobody").empty());
}

TEST_F(StoreTest, TheOwnerIndexFollowsAdoptionAndDeletion) {
  store_.put(pod("a", "p", "1", "u", "job-1"));
  store_.put(pod("a", "p", "2", "u", "job-2"));
  EXPECT_TRUE(store_.list_owned_by("job-1").empty());
  EXPECT_EQ(store_.list_owned_by("job-2").size(), 1U);
  store_.erase(pod("a", "p", "3", "u"));
  EXPECT_TRUE(store_.list_owned_by("job-2").empty());
}

TEST_F(StoreTest, AReplacementDeletesWhatIsAbsentAndTellsOnlyWhatChanged) {
  store_.replace(
      {pod("a", "gone", "1"), pod("a", "same", "2"), pod("a", "newer", "3"), pod("a", "again", "4", "first")}, "5");
  changes();
  store_.replace(
      {pod("a", "same", "2"), pod("a", "newer", "9"), pod("a", "again", "8", "second"), pod("a", "fresh", "7")}, "9");
  EXPECT_THAT(changes(), ElementsAre("a/gone uid-gone@1 -> -", "a/again first@4 -> second@8",
                                     "a/fresh - -> uid-fresh@7", "a/newer uid-newer@3 -> uid-newer@9"));
  EXPECT_EQ(store_.size(), 4U);
}

TEST_F(StoreTest, IgnoresOlderVersionsOfTheSameObjectButNotOfItsNamesake) {
  store_.put(pod("a", "p", "10", "u1"));
  store_.put(pod("a", "p", "9", "u1"));
  store_.put(pod("a", "p", "10", "u1"));
  EXPECT_EQ(changes().size(), 1U);
  store_.put(pod("a", "p", "11", "u2"));
  EXPECT_THAT(changes(), ElementsAre("a/p u1@10 -> u2@11"));
  store_.erase(pod("a", "p", "12", "u1"));
  EXPECT_TRUE(store_.get({"a", "p"})) << "the deletion of the dead namesake came late";
}

TEST_F(StoreTest, ADeletionUnknownToUsIsNoChange) {
  store_.erase(pod("a", "p", "1"));
  EXPECT_TRUE(changes().empty());
}

TEST_F(StoreTest, IsSyncedOnceAListWasTakenIn) {
  EXPECT_FALSE(store_.synced());
  EXPECT_FALSE(store_.wait_synced(1ms));
  std::jthread writer([&] { store_.replace({}, "1"); });
  EXPECT_TRUE(store_.wait_synced(10s));
  std::stop_source stop;
  stop.request_stop();
  Store other(resources::kPods);
  EXPECT_FALSE(other.wait_synced(10s, stop.get_token()));
}

TEST_F(StoreTest, IsBehindUntilItHasSeenOurOwnWrite) {
  store_.replace({pod("a", "p", "9")}, "9");
  EXPECT_EQ(store_.freshness({"a", "p"}), Freshness::Current);
  store_.expect_at_least({"a", "p"}, "10");
  EXPECT_EQ(store_.freshness({"a", "p"}), Freshness::Behind);
  EXPECT_EQ(store_.freshness({"a", "other"}), Freshness::Current);
  store_.put(pod("a", "p", "10"));
  EXPECT_EQ(store_.freshness({"a", "p"}), Freshness::Current);
}

TEST_F(StoreTest, AnyLaterVersionOfTheTypeMeetsAnExpectation) {
  store_.expect_at_least({"a", "p"}, "10");
  store_.advance("9");
  EXPECT_EQ(store_.freshness({"a", "p"}), Freshness::Behind);
  store_.advance("11");
  EXPECT_EQ(store_.freshness({"a", "p"}), Freshness::Current);
}

TEST_F(StoreTest, AnExpectationIsOverdueAfterTenSecondsAndThenForgotten) {
  store_.expect_at_least({"a", "p"}, "10");
  clock_->advance(11s);
  EXPECT_EQ(store_.freshness({"a", "p"}), Freshness::Overdue);
  EXPECT_EQ(store_.freshness({"a", "p"}), Freshness::Current);
}

TEST_F(StoreTest, ProjectsAndNeverKeepsManagedFields) {
  const Store lean(resources::kPods, [](nlohmann::json& object) { object.erase("spec"); });
  nlohmann::json document = pod_json("a", "p", "1");
  document["metadata"]["managedFields"] = {{{"manager", "x"}}};
  document["spec"] = {{"big", 1}};
  const Object kept = lean.project(document);
  EXPECT_FALSE(kept.json()["metadata"].contains("managedFields"));
  EXPECT_FALSE(kept.json().contains("spec"));
  EXPECT_EQ(lean.project({{"metadata", 7}}).name(), "");
}

TEST_F(StoreTest, AProjectionThatThrowsKeepsTheObjectAndAListenerThatThrowsTheOthers) {
  Store odd(resources::kPods, [](nlohmann::json&) { throw std::runtime_error("a projection's fault"); });
  EXPECT_EQ(odd.project(pod_json("a", "p", "1")).name(), "p");
  int told = 0;
  const Subscription faulty = odd.listen([](const Change&) { throw std::runtime_error("a listener's fault"); });
  const Subscription good = odd.listen([&](const Change&) { ++told; });
  odd.put(pod("a", "p", "1"));
  odd.replace({}, "2");
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(odd.synced());
}

TEST_F(StoreTest, AnEndedSubscriptionHearsNothing) {
  subscription_.reset();
  store_.put(pod("a", "p", "1"));
  EXPECT_TRUE(changes().empty());
}

TEST_F(StoreTest, ReadersSeeWholeStatesWhileItIsWritten) {
  std::atomic<bool> done{false};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const std::size_t n = store_.list().size();
        EXPECT_TRUE(n == 0 || n == 50) << n;
        for (const Object& one : store_.list_owned_by("job")) EXPECT_EQ(one.ns(), "a");
        (void)store_.freshness({"a", "p0"});
      }
    });
  }
  for (int round = 1; round <= 100; ++round) {
    std::vector<Object> objects;
    for (int i = 0; i < 50; ++i) objects.push_back(pod("a", "p" + std::to_string(i), std::to_string(round), "", "job"));
    store_.expect_at_least({"a", "p0"}, std::to_string(round));
    store_.replace(std::move(objects), std::to_string(round));
    changes_.clear();
  }
  done = true;
}

}  // namespace
}  // namespace loadline::kube
