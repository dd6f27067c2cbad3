#include "daemon/words/format.h"

#include <gtest/gtest.h>

namespace lull {
namespace {

TEST(FormatDuration, KeepsThreeDigits) {
  EXPECT_EQ(FormatDuration(0), "0 ns");
  EXPECT_EQ(FormatDuration(999), "999 ns");
  EXPECT_EQ(FormatDuration(1'000), "1.00 us");
  EXPECT_EQ(FormatDuration(999'499), "999 us");
  EXPECT_EQ(FormatDuration(999'500), "1.00 ms");
  EXPECT_EQ(FormatDuration(8'123'456), "8.12 ms");
  EXPECT_EQ(FormatDuration(81'234'567), "81.2 ms");
  EXPECT_EQ(FormatDuration(42'300'000'000), "42.3 s");
  EXPECT_EQ(FormatDuration(119'000'000'000), "119 s");
  EXPECT_EQ(FormatDuration(125'000'000'000), "2 min 05 s");
  EXPECT_EQ(FormatDuration(7'500'000'000'000), "2 h 05 min");
}

TEST(FormatBytes, UsesBinaryUnitsAndKeepsTheSign) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(1'572'864), "1.50 MiB");
  EXPECT_EQ(FormatBytes(-3072), "-3.00 KiB");
}

TEST(FormatCount, GroupsThousands) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1'000), "1,000");
  EXPECT_EQ(FormatCount(1'204'118), "1,204,118");
}

TEST(FormatShare, HasNoShareOfNothing) {
  EXPECT_EQ(FormatShare(1, 0), "-");
  EXPECT_EQ(FormatShare(1, 8), "12.5 %");
  EXPECT_EQ(FormatShare(1, 1000), "0.10 %");
}

TEST(Printable, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(Printable("a\x1b[31m\tb\x7f"), "a?[31m?b?");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "?31m")
      << "CSI in one character";
  EXPECT_EQ(Printable("\xe2\x80\xae"
                      "drawrof\xe2\x81\xa9"),
            "?drawrof?");
  EXPECT_EQ(Printable("für → 日本 \xe2\x80"), "für → 日本 \xe2\x80");
}

TEST(ShortPath, DropsTheWayToSitePackages) {
  EXPECT_EQ(ShortPath("/opt/venv/lib/python3.11/site-packages/torch/optim/sgd.py"),
            "torch/optim/sgd.py");
}

TEST(ShortPath, KeepsTheLastComponentsOfALongPath) {
  EXPECT_EQ(ShortPath("/a/very/long/way/through/many/folders/to/the/model.py"),
            ".../way/through/many/folders/to/the/model.py");
  EXPECT_EQ(ShortPath("train.py"), "train.py");
}

TEST(FormatSite, LeavesOutWhatIsNotKnown) {
  v1::Site site;
  EXPECT_EQ(FormatSite(site), "(unknown)");
  site.set_function("step");
  EXPECT_EQ(FormatSite(site), "step");
  site.set_file("train.py");
  EXPECT_EQ(FormatSite(site), "train.py step");
  site.set_line(42);
  EXPECT_EQ(FormatSite(site), "train.py:42 step");
  EXPECT_EQ(FormatSite(site, v1::GROUP_BY_FUNCTION), "train.py step");
}

TEST(FormatSite, HasTheForwardLineOfABackwardNode) {
  v1::Site site;
  site.set_file("train.py");
  site.set_line(110);
  site.set_function("ExpBackward0");
  site.mutable_backward_of()->set_function("train");
  EXPECT_EQ(FormatSite(site), "train.py:110 ExpBackward0");
  site.mutable_forward_site()->set_file("model.py");
  site.mutable_forward_site()->set_line(44);
  site.mutable_forward_site()->set_function("forward");
  EXPECT_EQ(FormatSite(site), "train.py:110 ExpBackward0 of model.py:44 forward");
  EXPECT_EQ(FormatSite(site, v1::GROUP_BY_FUNCTION),
            "train.py ExpBackward0 of model.py forward");
}

TEST(Shortened, NeverCutsInsideACharacter) {
  EXPECT_EQ(Shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(Shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(Shortened("ab\xC3\xA4"
                      "defg",
                      6),
            "ab...");
}

}  // namespace
}  // namespace lull
