#include "daemon/collector/ingest/region_feed.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <utility>

#include "daemon/collector/ingest/job_tables.h"

namespace lull::collector {
namespace {

using aggregate::EventType;

class RegionFeedTest : public ::testing::Test {
 protected:
  void Scope(uint32_t stack, uint64_t start, uint64_t end) {
    aggregate::Series series;
    series.type = EventType::kScope;
    series.native_stack = stack;
    aggregate::Event event;
    event.series = series_.Intern(series);
    event.start_ns = start;
    event.duration_ns = end - start;
    feed_.AddScope(event);
  }
  // (type, cause, stack) -> (total, amount) of what is told by then.
  using Told = std::map<std::tuple<EventType, int, uint32_t>, std::pair<int, int>>;
  Told Advance(uint64_t judged) {
    Told told;
    feed_.Advance(judged, [&](uint32_t id, uint64_t, uint64_t total, uint64_t amount) {
      const aggregate::Series& series = series_[id];
      auto& sum = told[{series.type, series.variant, series.native_stack}];
      sum.first += static_cast<int>(total);
      sum.second += static_cast<int>(amount);
    });
    return told;
  }

  JobTables tables_;
  SeriesTable series_{tables_};
  RegionFeed feed_{series_};
};

TEST_F(RegionFeedTest, TellsWhatDevicesDidWithinARegion) {
  feed_.AddTraced(DeviceId{0}, 100, 200);
  feed_.AddTraced(DeviceId{1}, 100, 200);
  feed_.AddIdle(DeviceId{0}, 120, 150, 5);
  feed_.AddIdle(DeviceId{0}, 180, 190, 11);
  Scope(7, 140, 185);
  Scope(8, 100, 200);
  EXPECT_EQ(Advance(190), (Told{{{EventType::kRegionTraced, 0, 7}, {90, 75}},
                                {{EventType::kRegionIdle, 5, 7}, {10, 0}},
                                {{EventType::kRegionIdle, 11, 7}, {5, 0}}}));
  EXPECT_EQ(Advance(200), (Told{{{EventType::kRegionTraced, 0, 8}, {200, 160}},
                                {{EventType::kRegionIdle, 5, 8}, {30, 0}},
                                {{EventType::kRegionIdle, 11, 8}, {10, 0}}}));
  EXPECT_EQ(Advance(1000), Told{});
}

TEST_F(RegionFeedTest, TellsNothingWhereNothingWasTraced) {
  Scope(7, 140, 185);
  EXPECT_EQ(Advance(1000), Told{});
}

TEST_F(RegionFeedTest, TellsNothingTwice) {
  feed_.Restore(150);
  feed_.AddTraced(DeviceId{0}, 100, 200);
  Scope(7, 110, 150);
  Scope(8, 110, 151);
  EXPECT_EQ(Advance(1000), (Told{{{EventType::kRegionTraced, 0, 8}, {41, 41}}}));
}

TEST_F(RegionFeedTest, LeavesOutWhatHasNoName) {
  feed_.AddTraced(DeviceId{0}, 100, 200);
  Scope(0, 110, 150);
  EXPECT_EQ(Advance(1000), Told{});
}

}  // namespace
}  // namespace lull::collector
