// Which kernel is which collective, from events of a rank.
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

constexpr uint64_t kComm = 77;

class DeviceRankTest : public testing::Test {
 protected:
  // `submitted_ns`: the call of NCCL; its launch is 2 us later.
  void Call(uint64_t start_ns, uint32_t number, uint64_t communicator = kComm,
            uint32_t tid = 1) {
    Event event;
    event.start_ns = start_ns;
    event.duration_ns = 20 * kUs;
    event.tid = tid;
    event.arg0 = communicator;
    event.arg1 = number | uint64_t{8} << 32;
    event.arg2 = 100;
    rank_.Add(event, {.type = EventType::kCollective}, false);
  }

  void Api(uint64_t start_ns, uint32_t correlation, uint32_t tid = 1) {
    Event event;
    event.start_ns = start_ns;
    event.duration_ns = 5 * kUs;
    ApiCallView{event}
        .set_caller(ThreadId{tid})
        .set_correlation(CorrelationId{correlation});
    rank_.Add(event, {.type = EventType::kApiCall}, false);
  }

  void Kernel(uint64_t start_ns, uint64_t end_ns, uint32_t correlation,
              bool communicates = true) {
    Event event;
    event.start_ns = start_ns;
    event.duration_ns = end_ns - start_ns;
    OperationView{event}.set_correlation(CorrelationId{correlation});
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

  DeviceRank rank_;
};

TEST_F(DeviceRankTest, AKernelIsTheCollectiveInWhichItWasLaunched) {
  Kernel(3 * kMs, 4 * kMs, 9);
  Kernel(5 * kMs, 6 * kMs, 10);
  Call(2 * kMs, 2);
  Call(1 * kMs, 1);
  Api(1 * kMs + 2 * kUs, 9);
  Api(2 * kMs + 2 * kUs, 10);
  rank_.Finish();
  ASSERT_EQ(rank_.collectives().size(), 2u);
  EXPECT_EQ(rank_.collectives()[0].number, 1u);
  EXPECT_EQ(rank_.collectives()[0].communicator, kComm);
  EXPECT_EQ(rank_.collectives()[0].members, 8u);
  EXPECT_EQ(rank_.collectives()[0].kib, 100u);
  EXPECT_EQ(rank_.collectives()[0].start_ns, 3 * kMs);
  EXPECT_EQ(rank_.collectives()[0].end_ns, 4 * kMs);
  EXPECT_EQ(rank_.collectives()[1].number, 2u);
  EXPECT_TRUE(rank_.unclear().empty());
}

TEST_F(DeviceRankTest, WhatIsOfNoCallOrOfAnotherThreadsIsUnclear) {
  Call(1 * kMs, 1);
  Api(1 * kMs + 30 * kUs, 9);     // after the call
  Api(1 * kMs + 2 * kUs, 10, 2);  // of another thread
  Kernel(3 * kMs, 4 * kMs, 9);
  Kernel(5 * kMs, 6 * kMs, 10);
  Kernel(7 * kMs, 8 * kMs, 11);  // of no call that CUPTI saw
  Kernel(9 * kMs, 10 * kMs, 0);
  rank_.Finish();
  EXPECT_TRUE(rank_.collectives().empty());
  EXPECT_EQ(rank_.unclear().size(), 4u);
}

TEST_F(DeviceRankTest, SeveralCommunicatorsOfAGroupAreUnclear) {
  Call(1 * kMs, 1, kComm);
  Call(1 * kMs, 1, kComm + 1);
  Call(2 * kMs, 2, kComm);
  for (uint32_t correlation : {9, 10}) {
    Api(1 * kMs + 2 * kUs, correlation);
    Kernel(correlation * kMs, correlation * kMs + kMs / 2, correlation);
  }
  Api(2 * kMs + 2 * kUs, 11);
  Kernel(11 * kMs, 12 * kMs, 11);
  rank_.Finish();
  ASSERT_EQ(rank_.collectives().size(), 1u);
  EXPECT_EQ(rank_.collectives()[0].number, 2u);
  EXPECT_EQ(rank_.unclear().size(), 2u);
}

TEST_F(DeviceRankTest, AnUnknownCommunicatorIsUnclear) {
  Call(1 * kMs, 1, 0);
  Api(1 * kMs + 2 * kUs, 9);
  Kernel(3 * kMs, 4 * kMs, 9);
  rank_.Finish();
  EXPECT_TRUE(rank_.collectives().empty());
  EXPECT_EQ(rank_.unclear().size(), 1u);
}

TEST_F(DeviceRankTest, AGroupOfOneCommunicatorMayHaveSeveralKernels) {
  Call(1 * kMs, 1);
  for (uint32_t correlation : {9, 10}) {
    Api(1 * kMs + correlation * kUs, correlation);
    Kernel(correlation * kMs, correlation * kMs + kMs / 2, correlation);
  }
  rank_.Finish();
  ASSERT_EQ(rank_.collectives().size(), 1u);
  EXPECT_EQ(rank_.collectives()[0].start_ns, 9 * kMs);
  EXPECT_EQ(rank_.collectives()[0].end_ns, 10 * kMs + kMs / 2);
}

TEST_F(DeviceRankTest, BetweenWindowsNothingIsKnown) {
  Traced(1 * kMs, 2 * kMs);
  Traced(2 * kMs, 3 * kMs);
  Traced(50 * kMs, 60 * kMs);
  Kernel(1 * kMs, 2 * kMs, 5, false);
  Kernel(2 * kMs, 3 * kMs, 6, false);
  Idle(52 * kMs, 53 * kMs, 7);
  Idle(55 * kMs, 59 * kMs, 8);
  rank_.Finish();
  ASSERT_EQ(rank_.unclear().size(), 1u);
  EXPECT_EQ(rank_.unclear()[0].start_ns, 3 * kMs);
  EXPECT_EQ(rank_.unclear()[0].end_ns, 50 * kMs);
  EXPECT_EQ(rank_.computing().size(), 1u);
  EXPECT_EQ(rank_.idle().size(), 2u);
  EXPECT_EQ(rank_.idle_thread(), 8u);
  EXPECT_TRUE(rank_.IsTraced(2 * kMs));
  EXPECT_FALSE(rank_.IsTraced(3 * kMs));
  EXPECT_TRUE(rank_.IsTraced(50 * kMs));
  EXPECT_FALSE(rank_.IsTraced(60 * kMs));
  EXPECT_FALSE(rank_.several_devices());
}

TEST_F(DeviceRankTest, SeveralDevicesAreSeen) {
  Traced(1 * kMs, 2 * kMs, 0);
  Traced(1 * kMs, 2 * kMs, 1);
  rank_.Finish();
  EXPECT_TRUE(rank_.several_devices());
}

}  // namespace
}  // namespace lull::query
