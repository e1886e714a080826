// Times as Kubernetes writes and reads them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace loadline {
namespace {

using std::chrono::milliseconds;

TimePoint at(std::int64_t millis) { return TimePoint(milliseconds(millis)); }

TEST(Time, IsWrittenToTheSecondOrToTheMicrosecond) {
  EXPECT_EQ(rfc3339(at(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339(at(1796033383123)), "2026-11-30T10:09:43Z");
  EXPECT_EQ(rfc3339_micro(at(1796033383123)), "2026-11-30T10:09:43.123000Z");
  EXPECT_EQ(rfc3339_micro(at(-1)), "1969-12-31T23:59:59.999000Z");
}

TEST(Time, IsReadInEveryFormOfTheApi) {
  EXPECT_EQ(parse_rfc3339("2026-11-30T10:09:43Z"), at(1796033383000));
  EXPECT_EQ(parse_rfc3339("2026-11-30T10:09:43.123456789Z"), at(1796033383123));
  EXPECT_EQ(parse_rfc3339("2026-11-30T10:09:43.1Z"), at(1796033383100));
  EXPECT_EQ(parse_rfc3339("2026-11-30T12:09:43+02:00"), at(1796033383000));
  EXPECT_EQ(parse_rfc3339("2026-11-30T05:39:43-04:30"), at(1796033383000));
  EXPECT_EQ(parse_rfc3339("2028-02-29T00:00:00Z"), at(1835395200000));
}

TEST(Time, ThatIsNoneIsNotRead) {
  for (const std::string_view text :
       {"", "2026-11-30", "2026-11-30T10:09:43", "2026-11-30 10:09:43Z", "2026-13-30T10:09:43Z", "2026-02-29T10:09:43Z",
        "2026-11-30T24:09:43Z", "2026-11-30T10:60:43Z", "2026-11-30T10:09:43.Z", "2026-11-30T10:09:43Zx",
        "2026-11-30T10:09:43+0200", "26-11-30T10:09:43Z", "2026-11-3aT10:09:43Z", "-026-11-30T10:09:43Z"}) {
    EXPECT_FALSE(parse_rfc3339(text).has_value()) << text;
  }
}

RC_GTEST_PROP(Time, WrittenAndReadAgainIsTheSame, ()) {
  const auto time = at(*rc::gen::inRange<std::int64_t>(0, 4102444800000));
  RC_ASSERT(parse_rfc3339(rfc3339_micro(time)) == time);
  RC_ASSERT(parse_rfc3339(rfc3339(time)) == TimePoint(std::chrono::floor<std::chrono::seconds>(time)));
}

RC_GTEST_PROP(Time, OfAnyTextIsATimeOrNothing, (const std::string& text)) {
  const auto time = parse_rfc3339(text);
  RC_ASSERT(!time || parse_rfc3339(rfc3339_micro(*time)) == time);
}

}  // namespace
}  // namespace loadline
