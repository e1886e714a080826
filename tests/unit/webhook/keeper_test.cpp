// Certificates kept in a Secret and published in registrations, against a pretended API server.
#include "webhook/keeper.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/unit/kube/fake_transport.h"
#include "webhook/base64.h"

namespace loadline::webhook {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const std::string kRegistrations = "/apis/admissionregistration.k8s.io/v1/";

/// Stores objects by path, with versions, create conflicts and JSON patches; notes the order of writes.
class PretendedServer {
 public:
  PretendedServer() {
    transport->handle([this](const kube::Request& request) { return answer(request); });
    for (const char* plural : {"mutatingwebhookconfigurations/", "validatingwebhookconfigurations/"}) {
      put(kRegistrations + plural + "loadline",
          {{"metadata", {{"name", "loadline"}}},
           {"webhooks", json::array({{{"name", "w"}, {"clientConfig", json::object()}}})}});
    }
  }

  void put(const std::string& path, json object) {
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    objects[path] = std::move(object);
  }
  /// As if another replica had written it.
  void put_secret(const Certificates& certificates) {
    json secret = to_secret_data(certificates);
    secret["metadata"] = {{"name", "tls"}, {"namespace", "sys"}};
    put(kSecret, std::move(secret));
  }
  std::string trusted(const std::string& plural) const {
    const json& config = objects.at(kRegistrations + plural + "/loadline")["webhooks"][0]["clientConfig"];
    return config.contains("caBundle") ? base64_decode(config["caBundle"].get<std::string>()).value() : "";
  }

  static constexpr const char* kSecret = "/api/v1/namespaces/sys/secrets/tls";
  std::shared_ptr<kube::FakeTransport> transport = std::make_shared<kube::FakeTransport>();
  std::map<std::string, json> objects;
  std::vector<std::string> writes;
  bool registrations_fail = false;
  std::function<void()> before_create = [] {};

 private:
  static kube::Answer<kube::Response> status(int code, const std::string& reason) {
    return kube::FakeTransport::reply(
        code, json{{"kind", "Status"}, {"status", "Failure"}, {"reason", reason}, {"code", code}}.dump());
  }

  kube::Answer<kube::Response> answer(const kube::Request& request) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (registrations_fail && path.starts_with(kRegistrations)) return status(403, "Forbidden");
    if (request.method == kube::Method::Post) {
      before_create();
      if (objects.count(kSecret) > 0) return status(409, "AlreadyExists");
      return write(kSecret, json::parse(request.body), 201);
    }
    const auto found = objects.find(path);
    if (found == objects.end()) return status(404, "NotFound");
    if (request.method == kube::Method::Get) return kube::FakeTransport::reply(200, found->second.dump());
    if (request.method == kube::Method::Patch) {
      try {
        return write(path, found->second.patch(json::parse(request.body)), 200);
      } catch (const json::exception&) {
        return status(422, "Invalid");
      }
    }
    json fresh = json::parse(request.body);
    if (fresh["metadata"]["resourceVersion"] != found->second["metadata"]["resourceVersion"]) {
      return status(409, "Conflict");
    }
    return write(path, std::move(fresh), 200);
  }

  kube::Answer<kube::Response> write(const std::string& path, json object, int code) {
    writes.push_back(path);
    put(path, std::move(object));
    return kube::FakeTransport::reply(code, objects[path].dump());
  }

  int version_ = 0;
};

class KeeperTest : public ::testing::Test {
 protected:
  struct Replica {
    explicit Replica(KeeperTest& test)
        : client(test.server.transport),
          keeper(client, served,
                 {"sys", "tls", "loadline", server_names("svc", "sys", ""), [&test] { return test.now; },
                  [&test](const std::string& words) { test.warnings.push_back(words); }}) {}
    kube::Client client;
    serve::ServedCertificate served;
    CertificateKeeper keeper;
  };

  Certificates stored() { return from_secret(server.objects.at(PretendedServer::kSecret)).value(); }

  PretendedServer server;
  std::vector<std::string> warnings;
  TimePoint now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 30);
};

TEST_F(KeeperTest, FirstRoundMakesPublishesAndServes) {
  Replica replica(*this);
  EXPECT_FALSE(replica.keeper.serving());
  ASSERT_TRUE(replica.keeper.round().ok());
  EXPECT_TRUE(replica.keeper.serving());
  EXPECT_NE(replica.served.context(), nullptr);
  EXPECT_EQ(server.trusted("mutatingwebhookconfigurations"), stored().bundle);
  EXPECT_EQ(server.trusted("validatingwebhookconfigurations"), stored().bundle);
  const std::size_t writes = server.writes.size();
  const auto context = replica.served.context();
  ASSERT_TRUE(replica.keeper.round().ok());
  EXPECT_EQ(server.writes.size(), writes) << "a second round has nothing to do";
  EXPECT_EQ(replica.served.context(), context);
}

TEST_F(KeeperTest, OfTwoReplicasThatRaceTheStoredPairWins) {
  Replica first(*this);
  Replica second(*this);
  bool raced = false;
  server.before_create = [&] {
    if (std::exchange(raced, true)) return;
    server.put_secret(renew(std::nullopt, Renewal::Authority, server_names("svc", "sys", ""), now).value());
  };
  ASSERT_TRUE(first.keeper.round().ok());
  ASSERT_TRUE(second.keeper.round().ok());
  EXPECT_TRUE(raced);
  EXPECT_EQ(first.keeper.leaf_ends(), second.keeper.leaf_ends());
  EXPECT_EQ(serve::split_bundle(server.trusted("validatingwebhookconfigurations")).size(), 1U);
}

TEST_F(KeeperTest, ADeadStoredCertificateIsReplacedAtBoot) {
  const TimePoint long_ago = now - 24h * 800;
  server.put_secret(renew(std::nullopt, Renewal::Authority, server_names("svc", "sys", ""), long_ago).value());
  Replica replica(*this);
  ASSERT_TRUE(replica.keeper.round().ok());
  EXPECT_TRUE(serve::verify_chain(stored().leaf, server.trusted("validatingwebhookconfigurations"), now).ok());
}

TEST_F(KeeperTest, AWrongNameInTheStoredCertificateIsReplacedAtBoot) {
  server.put_secret(renew(std::nullopt, Renewal::Authority, server_names("other", "sys", ""), now).value());
  Replica replica(*this);
  ASSERT_TRUE(replica.keeper.round().ok());
  EXPECT_TRUE(
      serve::covers(serve::read_certificate(stored().leaf.certificate).value(), server_names("svc", "sys", "")));
}

TEST_F(KeeperTest, ANewAuthorityIsTrustedBeforeItsLeafIsServed) {
  Replica replica(*this);
  ASSERT_TRUE(replica.keeper.round().ok());
  const auto before = replica.served.context();
  const std::string old_bundle = stored().bundle;
  now += 24h * 300;
  server.registrations_fail = true;
  EXPECT_FALSE(replica.keeper.round().ok());
  EXPECT_EQ(replica.served.context(), before) << "what is not trusted yet is not served";
  server.registrations_fail = false;
  ASSERT_TRUE(replica.keeper.round().ok());
  EXPECT_NE(replica.served.context(), before);
  const std::string trusted = server.trusted("validatingwebhookconfigurations");
  EXPECT_EQ(serve::split_bundle(trusted).size(), 2U);
  EXPECT_TRUE(trusted.ends_with(old_bundle)) << "the other replica may still serve a leaf of the old one";
}

TEST_F(KeeperTest, ANewLeafIsServedARoundAfterItIsTrustedWhoeverMadeIt) {
  Replica first(*this);
  Replica second(*this);
  ASSERT_TRUE(first.keeper.round().ok());
  ASSERT_TRUE(second.keeper.round().ok());
  now += 24h * 61;
  for (Replica* replica : {&first, &second}) {
    const auto before = replica->served.context();
    const std::int64_t ends = replica->keeper.leaf_ends();
    ASSERT_TRUE(replica->keeper.round().ok());
    EXPECT_EQ(replica->served.context(), before) << "API servers may not have learned of it yet";
    EXPECT_EQ(replica->keeper.leaf_ends(), ends);
    ASSERT_TRUE(replica->keeper.round().ok());
    EXPECT_NE(replica->served.context(), before);
    EXPECT_GT(replica->keeper.leaf_ends(), ends);
  }
}

TEST_F(KeeperTest, ANewLeafIsServedAtOnceWhenTheOldOneHasAnHourLeft) {
  Replica replica(*this);
  ASSERT_TRUE(replica.keeper.round().ok());
  const auto before = replica.served.context();
  now += kLeafLife - 1h;
  ASSERT_TRUE(replica.keeper.round().ok());
  EXPECT_NE(replica.served.context(), before);
}

TEST_F(KeeperTest, ARenewalThatFailsForDaysIsToldInWordsAndStopsWhenItSucceeds) {
  Replica replica(*this);
  ASSERT_TRUE(replica.keeper.round().ok());
  server.registrations_fail = true;
  now += 24h * 65;
  EXPECT_FALSE(replica.keeper.round().ok());
  EXPECT_FALSE(replica.keeper.overdue());
  EXPECT_TRUE(warnings.empty()) << "25 days are left, and the next minute may do better";
  now += 24h * 6;
  EXPECT_FALSE(replica.keeper.round().ok());
  EXPECT_TRUE(replica.keeper.overdue());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(
      warnings[0].starts_with("the webhook's certificate ends at 2027-02-28T00:00:00Z and could not be renewed"))
      << warnings[0];
  EXPECT_FALSE(replica.keeper.round().ok());
  EXPECT_EQ(warnings.at(1), warnings[0]) << "the same words, so that events of it become one";
  server.registrations_fail = false;
  ASSERT_TRUE(replica.keeper.round().ok());
  ASSERT_TRUE(replica.keeper.round().ok());
  EXPECT_FALSE(replica.keeper.overdue());
  EXPECT_EQ(warnings.size(), 2U);
}

TEST_F(KeeperTest, WithoutRegistrationsItServesAndPublishesOnceTheyCome) {
  const auto registrations = server.objects;
  server.objects.clear();
  Replica replica(*this);
  ASSERT_TRUE(replica.keeper.round().ok());
  for (const auto& [path, object] : registrations) server.put(path, object);
  ASSERT_TRUE(replica.keeper.round().ok());
  EXPECT_EQ(server.trusted("mutatingwebhookconfigurations"), stored().bundle);
}

}  // namespace
}  // namespace loadline::webhook
