#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/base/text.h"
#include "daemon/import/import.h"
#include "daemon/relay/deliver/spool.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::imports {
namespace {

class WriteSpoolTest : public testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& events) {
    const std::string path = directory_ / name;
    std::ofstream(path)
        << R"({"traceEvents":[)"
        << R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,)"
        << R"("dur":2,"args":{"device":0,"stream":7,"correlation":3}})" << events
        << "]}";
    return path;
  }
  absl::Status Write(const std::vector<std::string>& files, uint64_t most_bytes) {
    job_.set_id(std::string(32, 'a'));
    return WriteSpool(files, directory_ / "spool", nullptr, nullptr, &job_, most_bytes);
  }

  test::TemporaryDirectory directory_;
  lull::v1::JobInfo job_;
};

TEST_F(WriteSpoolTest, LeavesNothingOfATraceThatWouldFillTheDisk) {
  const std::string file = File("a.json", "");
  absl::Status status = Write({file}, 10);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "spool"));
  auto most = MostSpoolBytes({file});
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_TRUE(Write({file}, *most).ok());
  EXPECT_TRUE(std::filesystem::exists(directory_ / "spool/hello"));
}

TEST_F(WriteSpoolTest, LeavesNothingOfFilesThatNobodyWantsAnyMore) {
  job_.set_id(std::string(32, 'a'));
  const std::vector<std::string> files = {File("a.json", "")};
  const std::string spool = directory_ / "spool";
  absl::Status status = WriteSpool(
      files, spool, [](size_t, double) { return false; }, nullptr, &job_, 1 << 20);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_FALSE(std::filesystem::exists(spool));
  status = WriteSpool(
      files, spool, nullptr,
      [&] {
        EXPECT_FALSE(std::filesystem::exists(spool));
        return absl::AbortedError("no");
      },
      &job_, 1 << 20);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_FALSE(std::filesystem::exists(spool));
}

TEST_F(WriteSpoolTest, LeavesWhatAnotherLeftWholeMeanwhile) {
  const std::string file = File("a.json", "");
  ASSERT_TRUE(Write({file}, 1 << 20).ok());
  const std::string hello = directory_ / "spool/hello";
  const auto written = std::filesystem::last_write_time(hello);
  absl::Status status = Write({file}, 1 << 20);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
  EXPECT_EQ(std::filesystem::last_write_time(hello), written);
  auto spool = relay::Spool::Open(directory_ / "spool", 1 << 20);
  ASSERT_TRUE(spool.ok()) << spool.status();
  EXPECT_GT((*spool)->last_sequence(), 0u);
}

TEST_F(WriteSpoolTest, AsksOnceMoreWhenNobodyElseCanLayItDown) {
  job_.set_id(std::string(32, 'a'));
  int asked = 0;
  absl::Status status = WriteSpool(
      {File("a.json", "")}, directory_ / "spool", nullptr,
      [&] {
        if (++asked == 1) return absl::OkStatus();
        EXPECT_FALSE(relay::KeepSpool(directory_ / "spool").ok());
        return absl::CancelledError("it is there now");
      },
      &job_, 1 << 20);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "spool"));
}

TEST_F(WriteSpoolTest, OneOfTwoAtOnceSaysSoAndHarmsNothing) {
  const std::string file = File("a.json", "");
  std::filesystem::create_directory(directory_ / "spool");
  {
    auto other = relay::KeepSpool(directory_ / "spool");
    ASSERT_TRUE(other.ok()) << other.status();
    absl::Status status = Write({file}, uint64_t{1} << 20);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr("another lull import"));
    std::ofstream(std::string(directory_ / "spool/importing")).flush();
    RemoveUnfinished(directory_ / "");
    EXPECT_TRUE(std::filesystem::exists(directory_ / "spool"));
  }
  RemoveUnfinished(directory_ / "");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "spool"));
  ASSERT_TRUE(Write({file}, uint64_t{1} << 20).ok());
  RemoveUnfinished(directory_ / "");
  EXPECT_TRUE(std::filesystem::exists(directory_ / "spool/hello"));
}

TEST_F(WriteSpoolTest, CountsAllThatWasIgnoredHoweverManyReasonsThereAre) {
  std::vector<std::string> files;
  uint64_t ignored = 0;
  for (int rank = 0; rank < 4; ++rank) {
    std::string events;
    for (int i = 0; i < 90; ++i, ++ignored) {
      events += R"(,{"ph":"q)" + std::to_string(100 * rank + i) + R"(","ts":1})";
    }
    files.push_back(File("rank" + std::to_string(rank) + ".json", events));
  }
  ASSERT_TRUE(Write(files, uint64_t{1} << 20).ok());
  EXPECT_EQ(job_.imported().ignored_size(), kMaxImportLines);
  uint64_t told = 0;
  for (const auto& row : job_.imported().ignored()) told += row.count();
  EXPECT_EQ(told, ignored);
}

}  // namespace
}  // namespace lull::imports
