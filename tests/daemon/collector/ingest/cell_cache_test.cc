#include "daemon/collector/ingest/cell_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <tuple>

#include "daemon/aggregate/buckets.h"
#include "daemon/storage/store.h"
#include "tests/daemon/storage/stored_process.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

// Level, bucket, series -> count.
using Counts = std::map<std::tuple<uint32_t, uint64_t, uint32_t>, uint64_t>;

class CellCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = *storage::Store::Open(directory_ / "a.db");
    ASSERT_TRUE(store_->writer().Begin().ok());
    process_ = test::StoreProcess(store_->writer()).id;
    ASSERT_TRUE(store_->writer().Commit().ok());
  }

  void Count(uint64_t bucket, uint32_t series) {
    changes_.At(bucket, series).Add(1, 0, 0);
    for (uint32_t level = 0; level < aggregate::kBucketLevels; ++level) {
      ++expected_[{level, bucket >> (aggregate::kBucketShift * level), series}];
    }
  }
  void Flush() {
    ASSERT_TRUE(store_->writer().Begin().ok());
    ASSERT_TRUE(cache_->Flush(changes_, process_, store_->writer()).ok());
    ASSERT_TRUE(store_->writer().Commit().ok());
    EXPECT_TRUE(changes_.empty());
  }
  void Restart() {
    cache_ = std::make_unique<CellCache>();
    cache_->SetStoredBefore();
  }
  Counts Stored() {
    Counts counts;
    for (uint32_t level = 0; level < aggregate::kBucketLevels; ++level) {
      EXPECT_TRUE(store_->writer()
                      .cells()
                      .ReadBuckets(process_, level, 0, uint64_t{1} << 40,
                                   [&](uint64_t bucket, uint32_t series,
                                       const aggregate::Cell& cell) {
                                     counts[{level, bucket, series}] = cell.count;
                                   })
                      .ok());
    }
    return counts;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_;
  int64_t process_ = 0;
  std::unique_ptr<CellCache> cache_ = std::make_unique<CellCache>();
  CellChanges changes_;
  Counts expected_;
};

TEST_F(CellCacheTest, AddsToChunksThatItHasForgotten) {
  Count(7, 1);
  Flush();
  for (uint64_t bucket = 8; bucket < 40; ++bucket) {  // each flush forgets older ones
    Count(bucket, 100);
    Flush();
  }
  Count(7, 1);    // its second is long forgotten
  Count(7, 100);  // another chunk of that second, which was never there
  Flush();
  EXPECT_EQ(Stored(), expected_);
}

TEST_F(CellCacheTest, AddsToWhatWasStoredBeforeARestart) {
  Count(7, 1);
  Flush();
  Restart();
  Count(7, 1);
  Flush();
  EXPECT_EQ(Stored(), expected_);
}

TEST_F(CellCacheTest, RandomChangesAddUpWhateverIsForgotten) {
  std::mt19937 random(11);
  uint64_t now = 0;
  for (int flush = 0; flush < 400; ++flush) {
    now += random() % 4;
    for (uint32_t i = random() % 40; i > 0; --i) {
      // Mostly what is now, at times what is late; few series, or many at once.
      const uint64_t back = random() % 10 == 0 ? random() % 300 : random() % 2;
      Count(now - std::min(now, back), static_cast<uint32_t>(random() % 1000));
    }
    Flush();
    if (random() % 60 == 0) Restart();
  }
  EXPECT_EQ(Stored(), expected_);
}

// More chunks at once than are kept: they are written and forgotten within a flush.
TEST_F(CellCacheTest, AddsUpADayThatIsJudgedAtOnce) {
  for (int time = 0; time < 2; ++time) {
    for (uint64_t bucket = 0; bucket < 20'000; ++bucket) Count(bucket, 3);
    Flush();
  }
  EXPECT_EQ(Stored(), expected_);
}

}  // namespace
}  // namespace lull::collector
