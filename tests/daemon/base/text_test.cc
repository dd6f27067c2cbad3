#include "daemon/base/text.h"

#include <gtest/gtest.h>

namespace lull {
namespace {

TEST(CleanText, KeepsWellFormedText) {
  EXPECT_EQ(CleanText("train.py \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "train.py \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(CleanText, ReplacesEveryByteThatIsNotUtf8) {
  EXPECT_EQ(CleanText("a\xff"
                      "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(CleanText("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");  // overlong
  EXPECT_EQ(CleanText("\xed\xa0\x80"),                           // surrogate
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(CleanText("\xf4\x90\x80\x80").size(), 12u);          // beyond U+10FFFF
  EXPECT_EQ(CleanText("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");  // cut short
}

TEST(CleanText, CutsBetweenTwoCharacters) {
  EXPECT_EQ(CleanText("ab\xe2\x82\xac", 4), "ab");
  EXPECT_EQ(CleanText("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
  EXPECT_EQ(CleanText(std::string(10'000, 'x')).size(), kMaxWireString);
}

}  // namespace
}  // namespace lull
