#include "daemon/procfs/maps.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace lull {
namespace {

constexpr char kText[] =
    "7f0000002000-7f0000003000 rw-p 00001000 08:02 77 /lib/a b.so (deleted)\n"
    "7f0000000000-7f0000002000 r-xp 00000000 08:02 77                /lib/a b.so\n"
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                 [stack]\n"
    "7f0000008000-7f0000009000 ---p 00000000 00:00 0 \n"
    "not a line at all\n"
    "7f0000009000-7f0000009000 r--p 00000000 00:00 0 \n";

TEST(ParseMaps, ReadsEveryFieldInTheOrderOfAddresses) {
  std::vector<Mapping> maps = ParseMaps(kText);
  ASSERT_EQ(maps.size(), 4u);
  EXPECT_EQ(maps[0].start, 0x7f0000000000u);
  EXPECT_EQ(maps[0].end, 0x7f0000002000u);
  EXPECT_TRUE(maps[0].readable && maps[0].executable && !maps[0].writable);
  EXPECT_EQ(maps[0].device, makedev(8, 2));
  EXPECT_EQ(maps[0].inode, 77u);
  EXPECT_EQ(maps[0].path, "/lib/a b.so");
  EXPECT_EQ(maps[1].offset, 0x1000u);
  EXPECT_EQ(maps[1].path, "/lib/a b.so (deleted)");
  EXPECT_EQ(maps[2].path, "");
  EXPECT_FALSE(maps[2].readable);
  EXPECT_EQ(maps[3].path, "[stack]");
}

TEST(FindMapping, FindsWhatHoldsAnAddress) {
  std::vector<Mapping> maps = ParseMaps(kText);
  EXPECT_EQ(FindMapping(maps, 0x7effffffffff), nullptr);
  EXPECT_EQ(FindMapping(maps, 0x7f0000000000), &maps[0]);
  EXPECT_EQ(FindMapping(maps, 0x7f0000001fff), &maps[0]);
  EXPECT_EQ(FindMapping(maps, 0x7f0000002000), &maps[1]);
  EXPECT_EQ(FindMapping(maps, 0x7f0000003000), nullptr);
  EXPECT_EQ(FindMapping({}, 1), nullptr);
}

}  // namespace
}  // namespace lull
