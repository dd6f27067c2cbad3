#include "daemon/relay/symbols/source_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SourceReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(chmod(files_.path().c_str(), 0755), 0);
    root_ = std::make_shared<const UniqueFd>(open("/", O_PATH | O_DIRECTORY));
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::string path = files_ / name;
    std::ofstream(path) << text;
    return path;
  }
  SourceReader::Request Request(std::vector<SourceLine> lines) const {
    return {MappedBy::Process(getpid()), root_, 1, UINT64_MAX, std::move(lines)};
  }
  static std::vector<SourceReader::Quoted> TakeAll(SourceReader* reader) {
    for (int i = 0; i < 10'000 && reader->reading(); ++i) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_FALSE(reader->reading());
    return reader->Take();
  }

  test::TemporaryDirectory files_;
  std::shared_ptr<const UniqueFd> root_;
};

TEST_F(SourceReaderTest, QuotesWhatIsThere) {
  SourceReader reader;
  EXPECT_FALSE(reader.reading());
  const std::string file = Write("train.py", "one\ntwo\nthree\nfour\n");
  std::vector<SourceLine> lines = {{files_ / "none.py", 1}};
  for (uint32_t i = 1; i <= 100; ++i) lines.push_back({file, i});  // 4 are there
  reader.Ask(Request(lines));
  std::vector<SourceReader::Quoted> quoted = TakeAll(&reader);
  ASSERT_THAT(quoted, SizeIs(4));
  EXPECT_EQ(quoted[1].at, (SourceLine{file, 2}));
  EXPECT_EQ(quoted[1].excerpt.first_line, 1u);
  EXPECT_THAT(quoted[1].excerpt.lines, ElementsAre("one", "two", "three", "four"));
  EXPECT_THAT(reader.Take(), IsEmpty());
  reader.Ask(Request({{file, 4}}));
  EXPECT_THAT(TakeAll(&reader), SizeIs(1));
  EXPECT_GT(reader.CpuNs(), 0u);
}

// As a file system on a network does.
TEST_F(SourceReaderTest, NobodyWaitsForAFileThatHangs) {
  if (geteuid() != 0) GTEST_SKIP() << "another process opens what is not root's";
  const std::string file = Write("train.py", "one\n");
  std::promise<void> hangs, go_on;
  std::shared_future<void> released = go_on.get_future().share();
  const absl::Time began = absl::Now();
  {
    SourceReader reader([&hangs, released](int, const std::string&) {
      hangs.set_value();
      released.wait();
      return UniqueFd();
    });
    reader.Ask(Request({{file, 1}}));
    hangs.get_future().wait();
    reader.Ask(Request({{file, 2}}));
    EXPECT_TRUE(reader.reading());
    EXPECT_THAT(reader.Take(), IsEmpty());
  }
  EXPECT_LT(absl::Now() - began, absl::Seconds(10));
  go_on.set_value();  // the thread finds its way out
}

}  // namespace
}  // namespace lull::relay
