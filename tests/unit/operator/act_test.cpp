// What the server answers to a write, and what becomes of it.
#include "operator/act.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/names.h"
#include "operator/resources.h"
#include "tests/unit/kube/fake_transport.h"

namespace loadline::controller {
namespace {

using kube::FakeTransport;
using nlohmann::json;
namespace core = kube::resources;
using Kind = ActOutcome::Kind;

std::string failure(int code, const std::string& reason, const std::string& message) {
  return json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}.dump();
}

struct Fixture {
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  kube::Client client{transport, {.requests_per_second = 0}};
  kube::EventRecorder events{client};
  bool leading = true;
  std::vector<std::string> written;
  Actor actor{client, events, [this] { return leading; },
              [this](const kube::Resource& r, const kube::Object& o) { written.push_back(r.plural + "/" + o.name()); }};

  static json job(const std::string& owner) {
    return {{"apiVersion", "batch/v1"},
            {"kind", "Job"},
            {"metadata",
             {{"name", "llama-a1"},
              {"namespace", "team"},
              {"uid", "u"},
              {"resourceVersion", "5"},
              {"ownerReferences", json::array({{{"apiVersion", api::kApiVersion},
                                                {"kind", "TrainingJob"},
                                                {"name", "llama"},
                                                {"uid", owner},
                                                {"controller", true}}})}}}};
  }
  static Action create() { return Create{core::kJobs, job("mine"), "mine"}; }
  static constexpr const char* kJobs = "/apis/batch/v1/namespaces/team/jobs";
};

TEST(Actor, ReportsWhatItWrote) {
  Fixture f;
  f.transport->on("POST", Fixture::kJobs, FakeTransport::reply(201, Fixture::job("mine").dump()));
  EXPECT_EQ(f.actor.carry_out({Fixture::create()}).kind, Kind::Done);
  EXPECT_EQ(f.written, std::vector<std::string>{"jobs/llama-a1"});
}

TEST(Actor, TakesAChildThatIsThereAlreadyForItsOwnWhenTheOwnerIsTheSame) {
  Fixture f;
  f.transport->on("POST", Fixture::kJobs, FakeTransport::reply(409, failure(409, "AlreadyExists", "exists")));
  f.transport->on("GET", Fixture::kJobs, FakeTransport::reply(200, Fixture::job("mine").dump()));
  EXPECT_EQ(f.actor.carry_out({Fixture::create()}).kind, Kind::Done);
}

TEST(Actor, WaitsWhileTheNameBelongsToAnEarlierJob) {
  Fixture f;
  f.transport->on("POST", Fixture::kJobs, FakeTransport::reply(409, failure(409, "AlreadyExists", "exists")));
  f.transport->on("GET", Fixture::kJobs, FakeTransport::reply(200, Fixture::job("theirs").dump()));
  const ActOutcome outcome = f.actor.carry_out({Fixture::create(), Fixture::create()});
  EXPECT_EQ(outcome.kind, Kind::Wait);
  EXPECT_EQ(f.transport->count("POST"), 1U) << "what comes after it is not done";
}

TEST(Actor, LooksWhetherALostCreateWasCarriedOut) {
  Fixture f;
  f.transport->on("POST", Fixture::kJobs, kube::ApiError::transport(kube::ApiError::kConnection, "reset"));
  f.transport->on("GET", Fixture::kJobs, FakeTransport::reply(200, Fixture::job("mine").dump()));
  const ActOutcome outcome = f.actor.carry_out({Fixture::create()});
  EXPECT_EQ(outcome.kind == Kind::Done || outcome.kind == Kind::Retry, true);
  EXPECT_FALSE(outcome.refusal);
}

TEST(Actor, TellsARefusalFromAFailure) {
  struct Case {
    int code;
    const char* reason;
    bool refused, permanent;
  };
  for (const Case& c :
       {Case{422, "Invalid", true, true}, Case{403, "Forbidden", true, false}, Case{409, "Conflict", false, false}}) {
    Fixture f;
    f.transport->on("POST", Fixture::kJobs, FakeTransport::reply(c.code, failure(c.code, c.reason, "no")));
    const ActOutcome outcome = f.actor.carry_out({Fixture::create()});
    EXPECT_EQ(outcome.kind, Kind::Retry) << c.code;
    EXPECT_EQ(outcome.refusal.has_value(), c.refused) << c.code;
    EXPECT_EQ(outcome.refusal && outcome.refusal->permanent, c.permanent) << c.code;
  }
}

TEST(Actor, StopsAtAConflictOfTheStatus) {
  Fixture f;
  f.transport->on("PUT", "/apis/loadline.dev", FakeTransport::reply(409, failure(409, "Conflict", "newer")));
  json status = {{"metadata", {{"name", "llama"}, {"namespace", "team"}, {"resourceVersion", "1"}}}, {"status", {}}};
  const ActOutcome outcome = f.actor.carry_out({WriteStatus{resources::kTrainingJobs, status}, Fixture::create()});
  EXPECT_EQ(outcome.kind, Kind::Retry);
  EXPECT_EQ(f.transport->count("POST"), 0U);
}

TEST(Actor, TellsByAnEventWhatNoStatusCanTell) {
  Fixture f;
  f.transport->on("PUT", "/apis/loadline.dev",
                  FakeTransport::reply(422, failure(422, "Invalid", "no such key: model")));
  f.transport->on("POST", "/apis/events.k8s.io", FakeTransport::reply(201, "{}"));
  f.events.start();
  json status = {{"metadata", {{"name", "llama"}, {"namespace", "team"}, {"uid", "u"}, {"resourceVersion", "1"}}},
                 {"status", {}}};
  EXPECT_EQ(f.actor.carry_out({WriteStatus{resources::kTrainingJobs, status}}).kind, Kind::Retry);
  f.events.stop();
  ASSERT_EQ(f.transport->count("POST"), 1U);
  EXPECT_NE(f.transport->requests().back().body.find("no such key: model"), std::string::npos);
}

TEST(Actor, CountsAnotherUidUnderTheNameAsGone) {
  Fixture f;
  f.transport->on("DELETE", Fixture::kJobs, FakeTransport::reply(409, failure(409, "Conflict", "uid")));
  EXPECT_EQ(f.actor.carry_out({Remove{core::kJobs, {"team", "llama-a1"}, "u", {}}}).kind, Kind::Done);
}

TEST(Actor, WritesNothingOnceItDoesNotLead) {
  Fixture f;
  f.leading = false;
  EXPECT_EQ(f.actor.carry_out({Fixture::create()}).kind, Kind::Stop);
  EXPECT_TRUE(f.transport->requests().empty());
}

}  // namespace
}  // namespace loadline::controller
