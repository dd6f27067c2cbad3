#include "daemon/collector/ingest/series_table.h"

#include <gtest/gtest.h>

#include "daemon/collector/ingest/cell_cache.h"
#include "tests/daemon/storage/stored_process.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

using aggregate::EventType;
using aggregate::Series;

Series OfLine(uint32_t line) {
  Series series;
  series.type = EventType::kSync;
  series.line_site = line;
  return series;
}

TEST(SeriesTable, HasNoMoreSeriesThanACellCanName) {
  JobTables tables;
  SeriesTable series(tables, /*most_ids=*/4);  // 0 is none
  EXPECT_EQ(series.Intern(OfLine(10)), 1u);
  EXPECT_EQ(series.Intern(OfLine(20)), 2u);
  EXPECT_EQ(series.Intern(OfLine(30)), 3u);
  EXPECT_EQ(series.Intern(OfLine(40)), 0u);
  EXPECT_EQ(series.Intern(OfLine(40)), 0u);
  EXPECT_EQ(series.Intern(OfLine(20)), 2u) << "one that is there stays what it is";
  EXPECT_EQ(series[3].line_site, 30u);
}

TEST(JobTables, AStackIsTheSameHoweverItsFramesAreTold) {
  JobTables tables;
  lull::v1::StackDef whole, part;
  for (const char* function : {"inner", "outer"}) {
    lull::v1::Frame* frame = whole.add_frames();
    frame->set_function(function);
    frame->set_file("a.py");
    frame->set_line(3);
  }
  const uint32_t outer = tables.InternFrame(whole.frames(1));
  const uint32_t inner = tables.InternFrame(whole.frames(0));
  EXPECT_NE(outer, inner);
  const uint32_t stack = tables.InternStack(whole);
  EXPECT_EQ(tables.InternStack(part, {inner, outer}), stack);
  EXPECT_NE(tables.InternStack(part, {outer, inner}), stack);
  EXPECT_EQ(tables.InternStack(part), 0u);
  ASSERT_EQ(tables.Frames(stack).size(), 2u);
  EXPECT_EQ(tables.Frames(stack)[0]->function, "inner");
  lull::v1::Frame other = whole.frames(0);
  other.set_module("m.so");
  EXPECT_NE(tables.InternFrame(other), inner);
}

class StoredSeriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = *storage::Store::Open(directory_ / "a.db");
    ASSERT_TRUE(store_->writer().Begin().ok());
    process_ = test::StoreProcess(store_->writer());
  }
  void Put(uint32_t id) {
    storage::SeriesRow row{id, OfLine(10)};
    ASSERT_TRUE(store_->writer().catalogue().Put(process_.id, row).ok());
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_;
  storage::ProcessRow process_;
  JobTables tables_;
};

TEST_F(StoredSeriesTest, ANumberThatNoCellCanNameIsRefused) {
  Put(3);
  SeriesTable good(tables_, /*most_ids=*/4);
  ASSERT_TRUE(good.Load(store_->writer(), process_.id).ok());
  EXPECT_EQ(good[3].line_site, 10u);
  Put(4);
  SeriesTable bad(tables_, /*most_ids=*/4);
  EXPECT_TRUE(absl::IsDataLoss(bad.Load(store_->writer(), process_.id)));
}

TEST(CellChangesDeathTest, ACellIsNeverThatOfAnotherSeries) {
  CellChanges changes;
  constexpr uint32_t kBeyond = 1u << CellChanges::kSeriesBits;
  constexpr uint64_t kBucketBeyond = uint64_t{1} << (64 - CellChanges::kSeriesBits);
  changes.At(kBucketBeyond - 1, kBeyond - 1);
  EXPECT_DEATH(changes.At(1, kBeyond), "a cell would be that of another series");
  EXPECT_DEATH(changes.At(kBucketBeyond, 1), "a cell would be that of another series");
}

TEST(SeriesTableDeathTest, NoTableHasMoreThanACellCanName) {
  JobTables tables;
  EXPECT_DEATH(SeriesTable(tables, (1u << CellChanges::kSeriesBits) + 1),
               "a process may have more series than a cell can name");
}

}  // namespace
}  // namespace lull::collector
