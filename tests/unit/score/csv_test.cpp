#include "score/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::score {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Csv, ReadsQuotesDoubledQuotesAndLineBreaksInsideThem) {
  const Result<Csv> csv = parse_csv("id,notes\r\n1,\"a, b\"\n2,\"he said \"\"no\"\"\nand left\"\n");
  ASSERT_TRUE(csv.ok());
  EXPECT_THAT(csv->columns, ElementsAre("id", "notes"));
  EXPECT_THAT(csv->rows, ElementsAre(ElementsAre("1", "a, b"), ElementsAre("2", "he said \"no\"\nand left")));
}

TEST(Csv, TakesALastLineWithoutItsBreakAndSkipsEmptyLines) {
  const Result<Csv> csv = parse_csv("a\n\n1\n\n2");
  ASSERT_TRUE(csv.ok());
  EXPECT_THAT(csv->rows, ElementsAre(ElementsAre("1"), ElementsAre("2")));
}

TEST(Csv, NamesTheLineOfARowThatIsTooShort) {
  const Result<Csv> csv = parse_csv("a,b\n1,2\n3\n");
  ASSERT_FALSE(csv.ok());
  EXPECT_EQ(csv.error().message, "line 3: 1 fields where the header has 2");
}

TEST(Csv, NamesTheLineOfAQuoteThatNeverEnds) {
  const Result<Csv> csv = parse_csv("a,b\n1,\"2\n3,4\n");
  ASSERT_FALSE(csv.ok());
  EXPECT_THAT(csv.error().message, HasSubstr("line 2: a quote never ends"));
}

TEST(Csv, RefusesATextWithoutAHeader) { EXPECT_FALSE(parse_csv("").ok()); }

}  // namespace
}  // namespace loadline::score
