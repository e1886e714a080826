// Guessing what a person meant to type.
#include "base/nearest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace loadline {
namespace {

const std::vector<std::string_view> kWords{"full", "lora", "qlora", "freeze", "sequenceLength", "microBatchSize"};

TEST(Nearest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest("lorra", kWords), "lora");
  EXPECT_EQ(nearest("LORA", kWords), "lora");
  EXPECT_EQ(nearest("loar", kWords), "lora");
  EXPECT_EQ(nearest("QLora", kWords), "qlora");
  EXPECT_EQ(nearest("freez", kWords), "freeze");
  EXPECT_EQ(nearest("sequence_length", kWords), "sequenceLength");
  EXPECT_EQ(nearest("microBatch", kWords), std::nullopt);
}

TEST(Nearest, FindsNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest("", kWords), std::nullopt);
  EXPECT_EQ(nearest("x", kWords), std::nullopt);
  EXPECT_EQ(nearest("adapter", kWords), std::nullopt);
  EXPECT_EQ(nearest(std::string(1000, 'l'), kWords), std::nullopt);
  EXPECT_EQ(nearest("lora", {}), std::nullopt);
}

RC_GTEST_PROP(Nearest, FindsAKnownWordItself, ()) {
  const auto word = *rc::gen::elementOf(kWords);
  RC_ASSERT(nearest(word, kWords) == word);
}

}  // namespace
}  // namespace loadline
