#include "daemon/collector/ingest/engine_samples.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace lull::collector {
namespace {

constexpr uint64_t kAll = uint64_t{1} << 60;
constexpr uint32_t kThread = 8;

aggregate::Event At(uint64_t start, uint64_t end, uint32_t series,
                    uint32_t tid = kThread) {
  aggregate::Event event;
  event.tid = tid;
  event.start_ns = start;
  event.duration_ns = end - start;
  event.series = series;
  return event;
}

class EngineSamplesTest : public ::testing::Test {
 protected:
  void Sample(uint64_t time, bool blocked = false, uint32_t tid = kThread) {
    samples_.AddSample(At(time, time, 1, tid), blocked);
  }
  // time -> series of the mark
  std::map<uint64_t, uint32_t> Advance(uint64_t judged = kAll) {
    std::map<uint64_t, uint32_t> found;
    for (const EngineSamples::Found& one : samples_.Advance(judged)) {
      found[one.sample.start_ns] = one.mark;
    }
    return found;
  }
  EngineSamples samples_;
};

using Found = std::map<uint64_t, uint32_t>;

TEST_F(EngineSamplesTest, BetweenTwoCallsOfOneCallerItIsOnItsWayToTheNext) {
  samples_.AddMark(At(100, 110, 21), 5);
  samples_.AddMark(At(200, 210, 22), 5);
  for (uint64_t time : {99, 105, 150, 199, 200, 250}) Sample(time);
  EXPECT_EQ(Advance(), (Found{{105, 21}, {150, 22}, {199, 22}, {200, 22}}));
}

TEST_F(EngineSamplesTest, BetweenCallsOfTwoCallersItIsNobodys) {
  samples_.AddMark(At(100, 110, 21), 5);
  samples_.AddMark(At(200, 210, 22), 6);
  Sample(150);
  EXPECT_EQ(Advance(), Found{});
}

TEST_F(EngineSamplesTest, ABlockedOneIsOfTheCallThatItIsInOrNobodys) {
  samples_.AddMark(At(100, 110, 21), 5);
  samples_.AddMark(At(200, 210, 22), 5);
  Sample(105, true);
  Sample(150, true);
  EXPECT_EQ(Advance(), (Found{{105, 21}}));
}

TEST_F(EngineSamplesTest, ThreadsAreApart) {
  samples_.AddMark(At(100, 110, 21), 5);
  samples_.AddMark(At(200, 210, 22), 5);
  Sample(150, false, 9);
  EXPECT_EQ(Advance(), Found{});
}

TEST_F(EngineSamplesTest, WaitsForWhatComesLaterAndTellsOnce) {
  const uint64_t late = EngineSamples::kLateNs;
  Sample(2 * late);
  samples_.AddMark(At(2 * late - 10, 2 * late - 5, 21), 5);
  EXPECT_EQ(Advance(3 * late - 1), Found{});
  samples_.AddMark(At(2 * late + 10, 2 * late + 15, 22), 5);
  EXPECT_EQ(Advance(3 * late), (Found{{2 * late, 22}}));
  EXPECT_EQ(Advance(), Found{});
}

TEST_F(EngineSamplesTest, TellsNothingTwiceAfterARestart) {
  const uint64_t late = EngineSamples::kLateNs;
  samples_.Restore(late + 150);
  samples_.AddMark(At(100, 110, 21), 5);
  samples_.AddMark(At(200, 210, 22), 5);
  for (uint64_t time : {150, 151}) Sample(time);
  EXPECT_EQ(Advance(), (Found{{151, 22}}));
}

}  // namespace
}  // namespace lull::collector
