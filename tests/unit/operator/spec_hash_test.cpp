#include "operator/spec_hash.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

std::string hash_of(const json& spec) { return spec_hash(kube::Object(json{{"spec", spec}})); }

TEST(SpecHash, IsTheSameOnEveryMachineAndInEveryVersion) {
  EXPECT_EQ(hash_of({{"gpus", {{"count", 8}}}, {"model", {{"preset", "llama-3.1-8b"}}}}), "63e7452105fc76fe");
}

TEST(SpecHash, DoesNotDependOnTheOrderOfKeys) {
  EXPECT_EQ(hash_of(json::parse(R"({"a": {"x": 1, "y": [1, 2]}, "b": "z"})")),
            hash_of(json::parse(R"({"b": "z", "a": {"y": [1, 2], "x": 1}})")));
}

TEST(SpecHash, ChangesWithAnyFieldButThoseThatMayChangeWhileTheJobRuns) {
  const json spec = llama()["spec"];
  const std::string before = hash_of(spec);
  for (const char* merge :
       {R"({"suspend": true})", R"({"activeDeadlineSeconds": 60})", R"({"ttlSecondsAfterFinished": 60})"}) {
    json changed = spec;
    changed.merge_patch(json::parse(merge));
    EXPECT_EQ(hash_of(changed), before) << merge;
  }
  for (const char* merge :
       {R"({"model": {"preset": "llama-3.1-70b"}})", R"({"training": {"sequenceLength": 8192}})",
        R"({"parallelism": {"tensor": 2}})", R"({"gpus": {"count": 16}})", R"({"placement": {"pools": ["steady"]}})",
        R"({"memory": {"marginPercent": 9}})", R"({"checkpoint": {"keepLast": 3}})", R"({"progress": {}})",
        R"({"restart": null})", R"({"launcher": "none"})", R"({"template": {"metadata": null}})",
        R"({"queueName": "q"})"}) {
    json changed = spec;
    changed.merge_patch(json::parse(merge));
    EXPECT_NE(hash_of(changed), before) << merge;
  }
}

}  // namespace
}  // namespace loadline::controller
