#include "daemon/aggregate/buckets.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace lull::aggregate {
namespace {

uint64_t WidthOf(uint32_t level) { return kBucketNs << (kBucketShift * level); }

// The parts of a cover in their order, as [begin, end).
std::vector<std::pair<uint64_t, uint64_t>> PartsOf(const Cover& cover) {
  std::vector<std::pair<uint64_t, uint64_t>> parts;
  if (!cover.head.empty()) parts.emplace_back(cover.head.begin, cover.head.end);
  for (const BucketRun& run : cover.runs) {
    uint64_t width = WidthOf(run.level);
    parts.emplace_back(run.first * width,
                       run.end == kForever ? kForever : run.end * width);
  }
  if (!cover.tail.empty()) parts.emplace_back(cover.tail.begin, cover.tail.end);
  return parts;
}

void ExpectSeamless(uint64_t since, uint64_t until) {
  Cover cover = CoverRange(since, until);
  uint64_t at = since;
  for (auto [begin, end] : PartsOf(cover)) {
    EXPECT_EQ(begin, at) << since << " to " << until;
    EXPECT_LT(begin, end) << since << " to " << until;
    at = end;
  }
  EXPECT_EQ(at, until);
  EXPECT_LT(cover.head.end - cover.head.begin, kBucketNs);
  EXPECT_LT(cover.tail.end - cover.tail.begin, kBucketNs);
}

TEST(Buckets, CoverAnyRangeWithoutGapOrOverlap) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    uint64_t scale = kBucketNs << (random() % 24);
    uint64_t since = random() % scale;
    if (i % 3 == 0) since -= since % kBucketNs;
    uint64_t until = since + 1 + random() % scale;
    if (i % 5 == 0) until += kBucketNs - until % kBucketNs;
    ExpectSeamless(since, until);
    ExpectSeamless(since, kForever);
  }
}

TEST(Buckets, CoverAWeekWithFewBuckets) {
  const uint64_t week = uint64_t{7} * 24 * 3600 * 1'000'000'000;
  Cover cover = CoverRange(kBucketNs + 1, week - 1);
  uint64_t buckets = 0;
  for (const BucketRun& run : cover.runs) buckets += run.end - run.first;
  EXPECT_LE(buckets, 15u * 8 + week / WidthOf(4));
}

TEST(Buckets, KeepARangeWithinOneBucketAsAnEdge) {
  Cover cover = CoverRange(12, 34);
  EXPECT_EQ(cover.head.begin, 12u);
  EXPECT_EQ(cover.head.end, 34u);
  EXPECT_TRUE(cover.runs.empty());
  EXPECT_TRUE(cover.tail.empty());
}

TEST(Buckets, CoverAnEmptyRangeWithNothing) {
  EXPECT_TRUE(PartsOf(CoverRange(5, 5)).empty());
  EXPECT_TRUE(PartsOf(CoverRange(kBucketNs, kBucketNs)).empty());
}

TEST(Buckets, CountWhatLiesBeforeTheJobAsItsFirstInstant) {
  EXPECT_EQ(AfterStart(5, 10), 0u);
  EXPECT_EQ(AfterStart(15, 10), 5u);
}

}  // namespace
}  // namespace lull::aggregate
