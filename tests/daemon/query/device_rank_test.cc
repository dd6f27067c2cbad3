// What a device did, from events of its rank.
#include "daemon/query/device_rank.h"

#include <gtest/gtest.h>

#include <vector>

#include "daemon/aggregate/event_views.h"
#include "tests/daemon/units.h"

namespace lull::query {
namespace {

using aggregate::Event;
using aggregate::EventType;
using aggregate::Series;

class DeviceRankTest : public testing::Test {
 protected:
  void Kernel(uint64_t start_ns, uint64_t end_ns, bool communicates) {
    Event event;
    event.start_ns = start_ns;
    event.duration_ns = end_ns - start_ns;
    rank_.Add(event, {.type = EventType::kGpuKernel}, communicates);
  }

  void Traced(uint64_t start_ns, uint64_t end_ns, uint32_t device = 0) {
    Event event;
    event.start_ns = start_ns;
    event.duration_ns = end_ns - start_ns;
    rank_.Add(event, {.type = EventType::kCoverage, .shape = device}, false);
  }

  void Idle(uint64_t start_ns, uint64_t end_ns, uint32_t tid) {
    Event event;
    event.start_ns = start_ns;
    event.duration_ns = end_ns - start_ns;
    event.tid = tid;
    rank_.Add(event, {.type = EventType::kIdle}, false);
  }

  void Sync(uint64_t start_ns, uint64_t end_ns, uint32_t tid) {
    Event event;
    event.start_ns = start_ns;
    event.duration_ns = end_ns - start_ns;
    event.tid = tid;
    rank_.Add(event, {.type = EventType::kSync}, false);
  }

  DeviceRank rank_;
};

TEST_F(DeviceRankTest, CommunicationIsExposedWhereNothingElseComputes) {
  Kernel(10 * kMs, 20 * kMs, true);
  Kernel(15 * kMs, 25 * kMs, true);
  Kernel(5 * kMs, 12 * kMs, false);
  Kernel(14 * kMs, 16 * kMs, false);
  Kernel(24 * kMs, 30 * kMs, false);
  rank_.Finish();
  ASSERT_EQ(rank_.communication().size(), 2u);
  EXPECT_EQ(rank_.communication()[1].start_ns, 15 * kMs);
  EXPECT_EQ(rank_.communication_ns(), 15 * kMs);
  EXPECT_EQ(rank_.exposed_ns(), 15 * kMs - 5 * kMs);
  EXPECT_EQ(rank_.computing().size(), 3u);
}

TEST_F(DeviceRankTest, BetweenWindowsNothingIsKnown) {
  Traced(1 * kMs, 2 * kMs);
  Traced(2 * kMs, 3 * kMs);
  Traced(50 * kMs, 60 * kMs);
  Kernel(1 * kMs, 2 * kMs, false);
  Kernel(2 * kMs, 3 * kMs, false);
  Idle(52 * kMs, 53 * kMs, 7);
  Idle(55 * kMs, 59 * kMs, 8);
  rank_.Finish();
  ASSERT_EQ(rank_.untraced().size(), 1u);
  EXPECT_EQ(rank_.untraced()[0].start_ns, 3 * kMs);
  EXPECT_EQ(rank_.untraced()[0].end_ns, 50 * kMs);
  EXPECT_EQ(rank_.computing().size(), 1u);
  EXPECT_EQ(rank_.idle().size(), 2u);
  EXPECT_EQ(rank_.idle_thread(), 8u);
  EXPECT_TRUE(rank_.IsTraced(2 * kMs));
  EXPECT_FALSE(rank_.IsTraced(3 * kMs));
  EXPECT_TRUE(rank_.IsTraced(50 * kMs));
  EXPECT_FALSE(rank_.IsTraced(60 * kMs));
  EXPECT_FALSE(rank_.several_devices());
}

TEST_F(DeviceRankTest, ASyncIsOneOfTheThreadThatIsJudged) {
  Sync(1 * kMs, 4 * kMs, 7);
  Sync(6 * kMs, 9 * kMs, 7);
  Sync(2 * kMs, 3 * kMs, 8);
  Idle(3 * kMs, 5 * kMs, 7);
  Idle(3 * kMs, 5 * kMs, 8);
  Idle(3 * kMs, 5 * kMs, 9);
  rank_.Finish();
  ASSERT_EQ(rank_.idle().size(), 3u);
  for (const DeviceStretch& idle : rank_.idle()) {
    const DeviceStretch* sync = rank_.SyncOf(idle);
    EXPECT_EQ(sync == nullptr, idle.tid == 9);
    if (sync == nullptr) continue;
    EXPECT_EQ(sync->end_ns, (idle.tid == 7 ? 4 : 3) * kMs);
  }
}

TEST_F(DeviceRankTest, SeveralDevicesAreSeen) {
  Traced(1 * kMs, 2 * kMs, 0);
  Traced(1 * kMs, 2 * kMs, 1);
  rank_.Finish();
  EXPECT_TRUE(rank_.several_devices());
}

}  // namespace
}  // namespace lull::query
