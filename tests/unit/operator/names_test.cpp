#include "operator/names.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace loadline::controller {
namespace {

TEST(Names, FollowTheJobWhileItsNameIsShort) {
  EXPECT_EQ(service_name("llama-sft"), "llama-sft");
  EXPECT_EQ(attempt_job_name("llama-sft", 2), "llama-sft-a2");
  EXPECT_EQ(plan_config_name("llama-sft", 2), "llama-sft-a2-plan");
  EXPECT_EQ(checkpoint_claim_name("llama-sft"), "llama-sft-checkpoint");
  EXPECT_EQ(master_address("llama-sft", "team", 2), "llama-sft-a2-0.llama-sft.team.svc");
}

TEST(Names, OfPodsFitInADnsLabelHoweverLongTheJobsName) {
  const std::string name(253, 'x');
  EXPECT_LE((attempt_job_name(name, 9999) + "-9999").size(), 63U);
}

TEST(Names, OfServicesBeginWithALetterAndHoldNoDots) {
  for (const std::string& job : {std::string("8b.run"), std::string("a.b"), std::string("7b"), std::string("x-.y")}) {
    const std::string name = service_name(job);
    EXPECT_TRUE(name.front() >= 'a' && name.front() <= 'z') << name;
    EXPECT_TRUE(std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    })) << name;
  }
}

TEST(Names, OfDifferentJobsDifferEvenWhenTheirBeginningsDoNot) {
  const std::string common(200, 'x');
  EXPECT_NE(stem(common + "1"), stem(common + "2"));
  EXPECT_NE(stem("a.b"), stem("a-b"));
}

}  // namespace
}  // namespace loadline::controller
