#include "daemon/relay/symbols/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/daemon/storage/temporary_directory.h"

namespace lull::relay {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(mkdir((root_ / "usr").c_str(), 0755), 0);
    ASSERT_EQ(mkdir((root_ / "usr/lib").c_str(), 0755), 0);
    Write("usr/lib/libm.so", "mapped");
    fd_.reset(open(root_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
  }
  // As maps would have it.
  Mapping Mapped(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(stat((root_ / name).c_str(), &info), 0) << name;
    Mapping mapping;
    mapping.device = info.st_dev;
    mapping.inode = info.st_ino;
    mapping.path = "/" + name;
    return mapping;
  }
  // What is opened, or "".
  std::string Open(const Mapping& mapping) const {
    UniqueFd file = OpenMappedFileBelow(fd_.get(), mapping);
    char text[64];
    ssize_t size = file ? read(file.get(), text, sizeof(text)) : 0;
    return std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
  }

  test::TemporaryDirectory root_;
  UniqueFd fd_;
};

TEST_F(MappedFileTest, IsFoundBelowTheRoot) {
  EXPECT_EQ(Open(Mapped("usr/lib/libm.so")), "mapped");
}

TEST_F(MappedFileTest, IsFoundByWhatASnapshotKeeps) {
  std::string inode = std::to_string(Mapped("usr/lib/libm.so").inode);
  Maps maps =
      Maps::Parse("1000-2000 r-xp 00000000 00:00 " + inode + " /usr/lib/libm.so\n");
  ASSERT_NE(maps.Find(0x1000), nullptr);
  EXPECT_EQ(Open(*maps.Find(0x1000)), "mapped");
}

// Links of a target lead a relay of root anywhere on the host.
TEST_F(MappedFileTest, IsNotReachedThroughALink) {
  ASSERT_EQ(symlink("libm.so", (root_ / "usr/lib/link.so").c_str()), 0);
  ASSERT_EQ(symlink("usr", (root_ / "folder").c_str()), 0);
  ASSERT_EQ(symlink("/proc/self/root", (root_ / "magic").c_str()), 0);
  ASSERT_EQ(symlink("/etc/passwd", (root_ / "usr/lib/passwd.so").c_str()), 0);
  EXPECT_EQ(Open(Mapped("usr/lib/link.so")), "");
  EXPECT_EQ(Open(Mapped("folder/lib/libm.so")), "");
  EXPECT_EQ(Open(Mapped("magic/etc/passwd")), "");
  EXPECT_EQ(Open(Mapped("usr/lib/passwd.so")), "");
}

TEST_F(MappedFileTest, DoesNotLieOutsideOfTheRoot) {
  Mapping mapping = Mapped("usr/lib/libm.so");
  UniqueFd below(open((root_ / "usr/lib").c_str(), O_PATH | O_CLOEXEC));
  for (const char* path : {"/../lib/libm.so", "/../../usr/lib/libm.so", "/./libm.so",
                           "libm.so", "", "[vdso]", "//anon"}) {
    mapping.path = path;
    EXPECT_FALSE(OpenMappedFileBelow(below.get(), mapping)) << path;
  }
}

TEST_F(MappedFileTest, IsNoOtherFileOfTheSameName) {
  Mapping mapping = Mapped("usr/lib/libm.so");
  mapping.inode += 1;
  EXPECT_EQ(Open(mapping), "");
  mapping = Mapped("usr/lib/libm.so");
  mapping.device = makedev(250, 7);
  if (major(Mapped("usr/lib/libm.so").device) != 0) {
    EXPECT_EQ(Open(mapping), "");
  }
}

// To open a pipe waits for a writer, to open a device may do anything.
TEST_F(MappedFileTest, IsARegularFile) {
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(Open(Mapped("pipe")), "");
  EXPECT_EQ(Open(Mapped("usr/lib")), "");
  if (mknod((root_ / "null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {
    EXPECT_FALSE(OpenMappedFileBelow(fd_.get(), Mapped("null")));
  }
}

TEST_F(MappedFileTest, HasABound) {
  ASSERT_EQ(
      truncate((root_ / "usr/lib/libm.so").c_str(), static_cast<off_t>(kMaxMappedFile)),
      0);
  EXPECT_TRUE(OpenMappedFileBelow(fd_.get(), Mapped("usr/lib/libm.so")));
  ASSERT_EQ(truncate((root_ / "usr/lib/libm.so").c_str(),
                     static_cast<off_t>(kMaxMappedFile) + 1),
            0);
  EXPECT_FALSE(OpenMappedFileBelow(fd_.get(), Mapped("usr/lib/libm.so")));
}

TEST_F(MappedFileTest, IsFoundForALiveProcess) {
  char exe[4096];
  ssize_t size = readlink("/proc/self/exe", exe, sizeof(exe));
  ASSERT_GT(size, 0);
  struct stat info = {};
  ASSERT_EQ(stat("/proc/self/exe", &info), 0);
  Mapping mapping;
  mapping.device = info.st_dev;
  mapping.inode = info.st_ino;
  mapping.path = std::string(exe, static_cast<size_t>(size));
  EXPECT_TRUE(OpenMappedFile(getpid(), mapping));
}

}  // namespace
}  // namespace lull::relay
