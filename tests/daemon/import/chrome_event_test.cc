#include "daemon/import/chrome_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lull::imports {
namespace {

using ::testing::Optional;

TEST(Microseconds, AreExactToTheNanosecond) {
  EXPECT_THAT(NsOfMicroseconds("0"), Optional(0));
  EXPECT_THAT(NsOfMicroseconds("12"), Optional(12'000));
  EXPECT_THAT(NsOfMicroseconds("12.3"), Optional(12'300));
  EXPECT_THAT(NsOfMicroseconds("12.003"), Optional(12'003));
  EXPECT_THAT(NsOfMicroseconds("12.0039"), Optional(12'003));
  // A double has no room for the last digits.
  EXPECT_THAT(NsOfMicroseconds("1751410836123456.789"),
              Optional(1'751'410'836'123'456'789));
  EXPECT_THAT(NsOfMicroseconds("1.5e3"), Optional(1'500'000));
}

TEST(Microseconds, AreNoneOfWhatCannotBe) {
  for (const char* text :
       {"", "-1", "x", ".5", "1x", "99999999999999999999", "1e300", "nan", "inf"}) {
    EXPECT_EQ(NsOfMicroseconds(text), std::nullopt) << text;
  }
}

TEST(Integers, AreThoseInQuotesAndOfStreams) {
  EXPECT_THAT(IntegerOf("7"), Optional(7));
  EXPECT_THAT(IntegerOf("-1"), Optional(-1));
  EXPECT_THAT(IntegerOf("stream 20"), Optional(20));
  EXPECT_THAT(IntegerOf("12.0"), Optional(12));
  EXPECT_THAT(IntegerOf("18446744073709551615"), Optional(-1));
  EXPECT_EQ(IntegerOf("Spans"), std::nullopt);
  EXPECT_EQ(IntegerOf(""), std::nullopt);
}

}  // namespace
}  // namespace lull::imports
