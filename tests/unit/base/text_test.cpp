// Text for people: one unit per quantity, and cuts that never split a character.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "base/saturating.h"
#include "base/text.h"

namespace loadline {
namespace {

TEST(Text, SaysMemoryInGib) {
  EXPECT_EQ(gib(0), "0.0 GiB");
  EXPECT_EQ(gib(64 * kGiB), "64.0 GiB");
  EXPECT_EQ(gib(1536 * kMiB), "1.5 GiB");
  EXPECT_EQ(gib(2004 * kMiB, 2), "1.96 GiB");
  EXPECT_EQ(gib(-kGiB), "-1.0 GiB");
  EXPECT_EQ(gib_number(80 * kGiB, 0), "80");
  EXPECT_EQ(gib(kSaturated), "more than 8 EiB");
}

TEST(Text, SaysLargeCountsWithThreeDigits) {
  EXPECT_EQ(scientific(8.03e9), "8.03e9");
  EXPECT_EQ(scientific(70553706496), "7.06e10");
  EXPECT_EQ(scientific(0), "0.00e0");
  EXPECT_EQ(scientific(0.00012), "1.20e-4");
  EXPECT_EQ(scientific(1), "1.00e0");
}

TEST(Text, SaysDurationsInTheUnitAPersonWould) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(45), "45 s");
  EXPECT_EQ(duration_text(89), "89 s");
  EXPECT_EQ(duration_text(840), "14 min");
  EXPECT_EQ(duration_text(2.6 * 3600), "2.6 h");
  EXPECT_EQ(duration_text(31 * 3600), "31 h");
  EXPECT_EQ(duration_text(6.5 * 86400), "6.5 d");
  EXPECT_EQ(duration_text(1.0 / 0.0), "unknown");
}

TEST(Text, JoinsWithASeparator) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "", "b"}, ", "), "a, , b");
}

TEST(Text, IsCutBetweenCharacters) {
  EXPECT_EQ(cut_utf8("short", 10), "short");
  EXPECT_EQ(cut_utf8("0123456789", 10), "0123456789");
  EXPECT_EQ(cut_utf8("0123456789x", 10), "0123456...");
  EXPECT_EQ(cut_utf8("模型名称很长", 10), "模型...");
  EXPECT_EQ(cut_utf8("a模型名称很长", 9), "a模...");
  EXPECT_EQ(cut_utf8("🚀🚀🚀🚀", 12), "🚀🚀...");
  EXPECT_EQ(cut_utf8("🚀🚀🚀🚀", 10), "🚀...");
  EXPECT_EQ(cut_utf8("🚀🚀", 3), "...");
  EXPECT_EQ(cut_utf8("🚀🚀", 2), "..");
  EXPECT_EQ(cut_utf8("🚀🚀", 0), "");
}

RC_GTEST_PROP(Text, CutIsNeverLongerThanAsked, (const std::string& text)) {
  const auto most = *rc::gen::inRange<std::size_t>(0, 64);
  RC_ASSERT(cut_utf8(text, most).size() <= most);
}

RC_GTEST_PROP(Text, CutOfValidUtf8StaysValid, ()) {
  const auto characters =
      *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>("a", "é", "模", "🚀"));
  const auto most = *rc::gen::inRange<std::size_t>(4, 64);
  std::string text;
  for (const std::string& character : characters) text += character;
  std::string cut = cut_utf8(text, most);
  if (cut.size() < text.size()) cut.resize(cut.size() - 3);
  // What is left is the beginning of the text up to a whole character.
  std::string whole;
  for (const std::string& character : characters) {
    if (whole.size() >= cut.size()) break;
    whole += character;
  }
  RC_ASSERT(cut == whole);
}

}  // namespace
}  // namespace loadline
