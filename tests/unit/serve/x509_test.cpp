#include "serve/x509.h"

#include <gtest/gtest.h>

namespace loadline::serve {
namespace {

using namespace std::chrono_literals;

const TimePoint kNow = std::chrono::sys_days(std::chrono::year(2026) / 11 / 30);
const Validity kYear{kNow - 1h, kNow + 24h * 365};
const HostNames kNames{{"loadline-webhook.loadline-system.svc", "localhost"}, {"127.0.0.1", "::1"}};

class X509Test : public ::testing::Test {
 protected:
  PemPair authority = make_authority("loadline test", kYear).value();
  PemPair leaf = issue_server_certificate(authority, kNames, kYear).value();
};

TEST_F(X509Test, ALeafNamesItsHostsAndCarriesItsDates) {
  const auto facts = read_certificate(leaf.certificate);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->names, kNames);
  EXPECT_EQ(facts->validity.from, kYear.from);
  EXPECT_EQ(facts->validity.until, kYear.until);
  EXPECT_EQ(facts->subject, "loadline-webhook.loadline-system.svc");
}

TEST_F(X509Test, CoversOnlyWhatIsNamed) {
  const auto facts = read_certificate(leaf.certificate).value();
  EXPECT_TRUE(covers(facts, kNames));
  EXPECT_TRUE(covers(facts, {{}, {"0:0:0:0:0:0:0:1"}})) << "addresses compare by value";
  EXPECT_FALSE(covers(facts, {{"loadline-webhook.other.svc"}, {}}));
  EXPECT_FALSE(covers(facts, {{}, {"10.0.0.1"}}));
}

TEST_F(X509Test, VerifiesAChainWithinItsDates) {
  EXPECT_TRUE(verify_chain(leaf, authority.certificate, kNow).ok());
  EXPECT_FALSE(verify_chain(leaf, authority.certificate, kNow + 24h * 400).ok());
  EXPECT_FALSE(verify_chain(leaf, authority.certificate, kNow - 24h).ok());
}

TEST_F(X509Test, RefusesAnotherAuthorityAnotherKeyAndNonsense) {
  const PemPair other = make_authority("loadline test", kYear).value();
  EXPECT_FALSE(verify_chain(leaf, other.certificate, kNow).ok());
  EXPECT_FALSE(verify_chain({leaf.certificate, other.key}, authority.certificate, kNow).ok());
  EXPECT_FALSE(verify_chain({"", ""}, authority.certificate, kNow).ok());
  EXPECT_FALSE(verify_chain(leaf, "", kNow).ok());
  EXPECT_FALSE(read_certificate("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").ok());
  EXPECT_FALSE(issue_server_certificate({"", ""}, kNames, kYear).ok());
}

TEST_F(X509Test, ABundleOfTwoAuthoritiesTrustsLeavesOfBoth) {
  const PemPair other = make_authority("loadline test", kYear).value();
  const std::string bundle = other.certificate + authority.certificate;
  EXPECT_TRUE(verify_chain(leaf, bundle, kNow).ok());
  EXPECT_EQ(split_bundle("junk\n" + bundle + "junk"), (std::vector{other.certificate, authority.certificate}));
  EXPECT_TRUE(split_bundle("").empty());
}

}  // namespace
}  // namespace loadline::serve
