// docs/api.md is what its generator makes of the CRDs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace loadline::api {
namespace {

TEST(ApiReference, IsCurrent) {
  const std::string command = "python3 '" LOADLINE_SOURCE_DIR "/docs/generate-api.py' --check";
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe): the test has one thread
}

}  // namespace
}  // namespace loadline::api
