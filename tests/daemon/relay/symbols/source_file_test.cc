#include "daemon/relay/symbols/source_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "tests/daemon/storage/temporary_directory.h"

namespace lull::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SourceFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(mkdir((root_ / "job").c_str(), 0755), 0);
    fd_.reset(open(root_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    Write("job/train.py", "one\n");
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
  }
  std::string Read(const std::string& path, uint64_t not_after_ns = UINT64_MAX) {
    UniqueFd file = OpenSource(fd_.get(), path);
    return file ? ReadSource(file.get(), not_after_ns).value_or("(not read)")
                : "(not opened)";
  }

  test::TemporaryDirectory root_;
  UniqueFd fd_;
};

TEST_F(SourceFileTest, IsFoundBelowTheRootThroughLinksThatStayThere) {
  EXPECT_EQ(Read("/job/train.py"), "one\n");
  ASSERT_EQ(symlink("/job", (root_ / "link").c_str()), 0);
  EXPECT_EQ(Read("/link/train.py"), "one\n");
  EXPECT_EQ(Read("/../../job/train.py"), "one\n");
}

TEST_F(SourceFileTest, NoLinkLeadsOut) {
  ASSERT_EQ(symlink("/etc/passwd", (root_ / "job/out.py").c_str()), 0);
  ASSERT_EQ(symlink("../../../../../../../etc/passwd", (root_ / "job/up.py").c_str()),
            0);
  EXPECT_EQ(Read("/job/out.py"), "(not opened)");
  EXPECT_EQ(Read("/job/up.py"), "(not opened)");
}

TEST_F(SourceFileTest, WhatIsNoFileIsNotOpened) {
  ASSERT_EQ(mkfifo((root_ / "job/pipe.py").c_str(), 0644), 0);
  for (const char* path :
       {"/job/pipe.py", "/job", "/job/none.py", "job/train.py", ""}) {
    EXPECT_EQ(Read(path), "(not opened)") << path;
  }
}

TEST_F(SourceFileTest, AFileThatChangedLaterOrIsHugeIsNotRead) {
  struct stat info = {};
  ASSERT_EQ(stat((root_ / "job/train.py").c_str(), &info), 0);
  const uint64_t changed = static_cast<uint64_t>(info.st_ctim.tv_sec) * 1'000'000'000 +
                           static_cast<uint64_t>(info.st_ctim.tv_nsec);
  EXPECT_EQ(Read("/job/train.py", changed), "one\n");
  EXPECT_EQ(Read("/job/train.py", changed - 1), "(not read)");
  // The time of the last writing can be set back, that of the last change cannot.
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (root_ / "job/train.py").c_str(), long_ago, 0), 0);
  EXPECT_EQ(Read("/job/train.py", changed - 1), "(not read)");
  Write("job/huge.py", std::string(kMaxSourceFile + 1, '\n'));
  EXPECT_EQ(Read("/job/huge.py"), "(not read)");
}

// Half of what it was and half of what it is has never run. Without the second look at
// the file one of some fifty tries reads that.
TEST_F(SourceFileTest, AFileThatChangesWhileItIsReadIsNotRead) {
  const std::string path = root_ / "job/large.py";
  const std::string before(kMaxSourceFile, 'a'), after(kMaxSourceFile, 'b');
  for (int i = 0; i < 100; ++i) {
    Write("job/large.py", before);
    struct stat info = {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    const uint64_t written =
        static_cast<uint64_t>(info.st_ctim.tv_sec) * 1'000'000'000 +
        static_cast<uint64_t>(info.st_ctim.tv_nsec);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the next tick
    UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    std::atomic<bool> go{false};
    std::thread writer([&] {
      while (!go) {
      }
      constexpr size_t kPiece = kMaxSourceFile / 8;
      for (size_t at = 0; at < after.size(); at += kPiece) {
        EXPECT_EQ(pwrite(file.get(), &after[at], kPiece, static_cast<off_t>(at)),
                  static_cast<ssize_t>(kPiece));
      }
    });
    go = true;
    const std::string text = Read("/job/large.py", written);
    writer.join();
    ASSERT_TRUE(text == before || text == "(not read)") << "try " << i;
  }
}

TEST(ExcerptAroundTest, HasTheLineAndTwoOnEachSide) {
  const Excerpt middle = ExcerptAround("1\n2\n3\n4\n5\n6\n7\n", 4);
  EXPECT_EQ(middle.first_line, 2u);
  EXPECT_THAT(middle.lines, ElementsAre("2", "3", "4", "5", "6"));
  EXPECT_THAT(ExcerptAround("1\n2\n3\n4", 1).lines, ElementsAre("1", "2", "3"));
  EXPECT_THAT(ExcerptAround("1\n2\n3\n4", 4).lines, ElementsAre("2", "3", "4"));
  EXPECT_THAT(ExcerptAround("1\r\n\r\n3\r\n", 3).lines, ElementsAre("1", "", "3"));
}

// As Python counts: of a file of mixed ends another line would be shown.
TEST(ExcerptAroundTest, AReturnAloneEndsALineToo) {
  EXPECT_THAT(ExcerptAround("1\r2\r\n3\n4\r\r6\n", 4).lines,
              ElementsAre("2", "3", "4", "", "6"));
  EXPECT_THAT(ExcerptAround("1\r\r\n3", 3).lines, ElementsAre("1", "", "3"));
  EXPECT_THAT(ExcerptAround("1\r", 2).lines, IsEmpty());
}

TEST(ExcerptAroundTest, NothingOfALineThatIsNotThere) {
  for (uint32_t line : {0u, 5u, 1'000'000u, UINT32_MAX}) {
    EXPECT_THAT(ExcerptAround("1\n2\n3\n4\n", line).lines, IsEmpty()) << line;
  }
  EXPECT_THAT(ExcerptAround("", 1).lines, IsEmpty());
}

TEST(ExcerptAroundTest, LongLinesAreCut) {
  const Excerpt cut = ExcerptAround(std::string(1'000'000, 'x'), 1);
  EXPECT_THAT(cut.lines, ElementsAre(std::string(kMaxSourceLine, 'x')));
}

}  // namespace
}  // namespace lull::relay
