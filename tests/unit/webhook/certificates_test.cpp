#include "webhook/certificates.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "webhook/base64.h"

namespace loadline::webhook {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kDay = 24h;
const TimePoint kNow = std::chrono::sys_days(std::chrono::year(2026) / 11 / 30);
const serve::HostNames kNames = server_names("loadline-webhook", "loadline-system", "");

Certificates made(TimePoint now = kNow) { return renew(std::nullopt, Renewal::Authority, kNames, now).value(); }
Renewal need(const Certificates& stored, TimePoint now, const serve::HostNames& names = kNames) {
  return renewal_need(stored, names, now).what;
}
json registration(const std::string& bundle) {
  json webhook = {{"name", "validate.loadline.dev"}, {"clientConfig", {{"url", "https://x"}}}};
  if (!bundle.empty()) webhook["clientConfig"]["caBundle"] = base64_encode(bundle);
  return {{"metadata", {{"resourceVersion", "7"}}}, {"webhooks", json::array({webhook})}};
}
std::string bundle_of(const json& patched) {
  return base64_decode(patched["webhooks"][0]["clientConfig"]["caBundle"].get<std::string>()).value();
}

TEST(ServerNames, AreTheServicesAndTheUrlsHost) {
  EXPECT_EQ(server_names("s", "n", "").dns, (std::vector<std::string>{"s.n.svc", "s.n.svc.cluster.local"}));
  EXPECT_EQ(server_names("s", "n", "https://127.0.0.1:9443/x").ips, std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(server_names("s", "n", "https://[::1]:9443").ips, std::vector<std::string>{"::1"});
  EXPECT_EQ(server_names("s", "n", "https://hook.example").dns.back(), "hook.example");
}

TEST(Renewal, AFreshPairIsLeftAloneAndSurvivesTheSecret) {
  const Certificates fresh = made();
  EXPECT_EQ(need(fresh, kNow), Renewal::None);
  const auto again = from_secret(to_secret_data(fresh));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->leaf, fresh.leaf);
  EXPECT_EQ(again->authority, fresh.authority);
  EXPECT_EQ(again->bundle, fresh.bundle);
}

TEST(Renewal, AnUnreadableSecretIsNoSecret) {
  EXPECT_FALSE(from_secret(json::object()).has_value());
  json secret = to_secret_data(made());
  secret["data"]["tls.key"] = "not base64!";
  EXPECT_FALSE(from_secret(secret).has_value());
  secret = to_secret_data(made());
  secret["data"]["ca.crt"] = base64_encode("junk");
  EXPECT_FALSE(from_secret(secret).has_value());
}

TEST(Renewal, AnExpiredOrEndingServerCertificateIsReplacedAndTheAuthorityKept) {
  const Certificates stored = made();
  EXPECT_EQ(need(stored, kNow + 59 * kDay), Renewal::None);
  for (const auto days : {61, 89, 200}) {
    const TimePoint later = kNow + days * kDay;
    ASSERT_EQ(need(stored, later), Renewal::Leaf) << days;
    const Certificates fresh = renew(stored, Renewal::Leaf, kNames, later).value();
    EXPECT_EQ(fresh.authority, stored.authority);
    EXPECT_EQ(fresh.bundle, stored.bundle);
    EXPECT_EQ(need(fresh, later), Renewal::None);
  }
}

TEST(Renewal, AWrongNameAMismatchedKeyOrAForeignSignatureIsReplaced) {
  const Certificates stored = made();
  EXPECT_EQ(need(stored, kNow, server_names("loadline-webhook", "elsewhere", "")), Renewal::Leaf);
  Certificates mismatched = stored;
  mismatched.leaf.key = made().leaf.key;
  EXPECT_EQ(need(mismatched, kNow), Renewal::Leaf);
  Certificates foreign = stored;
  foreign.leaf = made().leaf;
  EXPECT_EQ(need(foreign, kNow), Renewal::Leaf);
  Certificates keyless = stored;
  keyless.authority.key = made().authority.key;
  EXPECT_EQ(need(keyless, kNow), Renewal::Authority);
}

TEST(Renewal, ANewAuthorityOverlapsTheOldSoThatCreationWorksAtEveryInstant) {
  const Certificates old = made();
  const TimePoint later = kNow + 300 * kDay;
  ASSERT_EQ(need(old, later), Renewal::Authority);
  const Certificates fresh = renew(old, Renewal::Authority, kNames, later).value();
  EXPECT_NE(fresh.authority, old.authority);
  EXPECT_EQ(serve::split_bundle(fresh.bundle).size(), 2U);
  const Certificates old_leaf = renew(old, Renewal::Leaf, kNames, kNow + 240 * kDay).value();
  EXPECT_TRUE(serve::verify_chain(fresh.leaf, fresh.bundle, later).ok());
  EXPECT_TRUE(serve::verify_chain(old_leaf.leaf, fresh.bundle, later).ok()) << "a replica may still serve it";
  const TimePoint past_the_old = kNow + 366 * kDay;
  const Certificates next = renew(fresh, Renewal::Leaf, kNames, past_the_old).value();
  EXPECT_EQ(serve::split_bundle(next.bundle).size(), 1U) << "the old one has ended";
}

TEST(Renewal, AServerCertificateNeverOutlivesItsAuthority) {
  Certificates certificates = made();
  for (int day = 0; day < 1000; day += 10) {
    const TimePoint now = kNow + day * kDay;
    const Renewal what = need(certificates, now);
    if (what != Renewal::None) certificates = renew(certificates, what, kNames, now).value();
    const auto leaf = serve::read_certificate(certificates.leaf.certificate).value();
    const auto authority = serve::read_certificate(certificates.authority.certificate).value();
    ASSERT_LE(leaf.validity.until, authority.validity.until) << "day " << day;
    ASSERT_TRUE(serve::verify_chain(certificates.leaf, certificates.bundle, now).ok()) << "day " << day;
  }
}

TEST(TrustPatch, AddsTheBundleOnceAndGuardsAgainstChange) {
  const Certificates certificates = made();
  const json before = registration("");
  const json patch = trust_patch(before, certificates.bundle, kNow);
  ASSERT_EQ(patch.size(), 2U);
  EXPECT_EQ(patch[0]["op"], "test");
  EXPECT_EQ(patch[0]["value"], "7");
  const json after = before.patch(patch);
  EXPECT_EQ(bundle_of(after), certificates.bundle);
  EXPECT_TRUE(trust_patch(after, certificates.bundle, kNow).empty());
}

TEST(TrustPatch, KeepsForeignAuthoritiesUntilTheyEnd) {
  const Certificates old = made();
  const Certificates fresh = made(kNow + 10 * kDay);
  const json before = registration(old.bundle);
  const json after = before.patch(trust_patch(before, fresh.bundle, kNow + 10 * kDay));
  EXPECT_EQ(bundle_of(after), fresh.bundle + old.bundle);
  const json later = after.patch(trust_patch(after, fresh.bundle, kNow + 370 * kDay));
  EXPECT_EQ(bundle_of(later), fresh.bundle);
}

TEST(TrustPatch, OfAnythingIsAPatchOrNothing) {
  for (const char* text : {"null", "{}", R"({"webhooks":7})"}) {
    EXPECT_TRUE(trust_patch(json::parse(text), made().bundle, kNow).empty()) << text;
  }
}

}  // namespace
}  // namespace loadline::webhook
