#include "daemon/procfs/stat.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace lull {
namespace {

// The fields behind the name say their own numbers.
std::string Stat(absl::string_view name) {
  std::string text = absl::StrCat("1 (", name, ") S");
  for (int number = 4; number <= 52; ++number) absl::StrAppend(&text, " ", number);
  return text + "\n";
}

TEST(StatField, IsCountedBehindTheName) {
  for (absl::string_view name : {"python", "odd) R 1 (name", ")", ""}) {
    std::string text = Stat(name);
    EXPECT_EQ(StatField(text, kStatState), "S");
    EXPECT_EQ(StatField(text, kStatParent), "4");
    EXPECT_EQ(StatField(text, kStatProcessor), "39");
    EXPECT_EQ(StatField(text, 52), "52");
    EXPECT_EQ(StatField(text, 53), "");
    EXPECT_EQ(StatField(text, 2), "");
  }
}

TEST(StatField, OfWhatIsNoStatFileIsEmpty) {
  EXPECT_EQ(StatField("", kStatState), "");
  EXPECT_EQ(StatField("1 (name", kStatState), "");
  EXPECT_EQ(StatField("1 (name)", kStatState), "");
}

TEST(StatusField, IsTheWholeValueOfThatNameAlone) {
  constexpr char kText[] =
      "Name:\tpython 3\nnonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t5\n";
  EXPECT_EQ(StatusField(kText, "Name"), "python 3");
  EXPECT_EQ(StatusField(kText, "voluntary_ctxt_switches"), "5");
  EXPECT_EQ(StatusField(kText, "nonvoluntary_ctxt_switches"), "7");
  EXPECT_EQ(StatusField(kText, "Nam"), "");
  EXPECT_EQ(StatusField("", "Name"), "");
}

}  // namespace
}  // namespace lull
