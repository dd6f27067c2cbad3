#include "daemon/relay/read/batch_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/relay/fake_segment.h"

namespace lull::relay {
namespace {

using ::testing::ElementsAre;

abi::Event At(uint64_t start_ns) {
  abi::Event event = MakeEvent(abi::EventType::kSync, 1, start_ns);
  event.duration_ns = start_ns + 1;
  event.arg1 = 2;
  event.arg2 = 3;
  event.api = 4;
  event.flags = abi::kFlagPageable;
  event.py_stack = 5;
  event.native_stack = 6;
  return event;
}

TEST(BatchBuilder, JoinsRunsThatFollowEachOther) {
  BatchBuilder builder;
  abi::Event first[] = {At(100), At(130)};
  abi::Event second[] = {At(120)};  // a start may lie before the one before it
  builder.AddEvents(9, 3, 50, first, 2, 11);
  builder.AddEvents(9, 3, 52, second, 1, 12);
  ASSERT_EQ(builder.batch()->rings_size(), 1);
  const auto& events = builder.batch()->rings(0).events();
  EXPECT_EQ(events.first_position(), 50u);
  EXPECT_EQ(events.base_ns(), 100u);
  EXPECT_THAT(events.start_delta_ns(), ElementsAre(0, 30, -10));
  EXPECT_THAT(events.duration_ns(), ElementsAre(101, 131, 121));
  EXPECT_THAT(events.tid(), ElementsAre(11, 11, 12));
  EXPECT_THAT(events.type(), ElementsAre(3, 3, 3));
  EXPECT_THAT(events.flags(), ElementsAre(4, 4, 4));
  EXPECT_THAT(events.api(), ElementsAre(4, 4, 4));
  EXPECT_THAT(events.arg0(), ElementsAre(1, 1, 1));
  EXPECT_THAT(events.arg1(), ElementsAre(2, 2, 2));
  EXPECT_THAT(events.arg2(), ElementsAre(3, 3, 3));
  EXPECT_THAT(events.python_stack(), ElementsAre(5, 5, 5));
  EXPECT_THAT(events.native_stack(), ElementsAre(6, 6, 6));
  EXPECT_EQ(builder.events(), 3u);
}

TEST(BatchBuilder, BeginsAnewBehindAGap) {
  BatchBuilder builder;
  abi::Event event = At(100);
  builder.AddEvents(9, 3, 50, &event, 1, 11);
  builder.AddEvents(9, 3, 52, &event, 1, 11);
  builder.AddEvents(9, 4, 52, &event, 1, 11);
  ASSERT_EQ(builder.batch()->rings_size(), 3);
  EXPECT_EQ(builder.batch()->rings(1).events().first_position(), 52u);
}

TEST(BatchBuilder, KeepsTheNewestCountersOfAProcess) {
  BatchBuilder builder;
  for (uint64_t calls : {1, 2}) {
    lull::v1::ProcessCounters counters;
    counters.set_process_key(9);
    counters.set_gpu_calls(calls);
    builder.AddCounters(counters);
  }
  ASSERT_EQ(builder.batch()->counters_size(), 1);
  EXPECT_EQ(builder.batch()->counters(0).gpu_calls(), 2u);
}

TEST(BatchBuilder, IsEmptyAgainAfterAReset) {
  BatchBuilder builder;
  EXPECT_TRUE(builder.empty());
  abi::Event event = At(100);
  builder.AddEvents(9, 3, 50, &event, 1, 11);
  EXPECT_FALSE(builder.empty());
  EXPECT_GT(builder.approximate_bytes(), 0u);
  builder.Reset();
  EXPECT_TRUE(builder.empty());
  EXPECT_EQ(builder.approximate_bytes(), 0u);
  EXPECT_EQ(builder.batch()->rings_size(), 0);
}

}  // namespace
}  // namespace lull::relay
