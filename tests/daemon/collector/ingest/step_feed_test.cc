#include "daemon/collector/ingest/step_feed.h"

#include <gtest/gtest.h>

#include "daemon/aggregate/wait_kind.h"
#include "daemon/base/event_views.h"
#include "daemon/collector/ingest/job_tables.h"

namespace lull::collector {
namespace {

constexpr auto kScopeOfData = static_cast<uint8_t>(aggregate::ScopeKind::kData);

using aggregate::Event;
using aggregate::EventType;

constexpr uint32_t kTid = 7;
constexpr uint64_t kCallsOfAStep = 50;
constexpr uint64_t kCalls = 12'000;

class StepFeedTest : public ::testing::Test {
 protected:
  Event Launch(uint64_t start_ns, uint64_t function) {
    EventIdentity identity;
    identity.type = EventType::kLaunch;
    Event event;
    event.series = series_.Find(identity);
    event.start_ns = start_ns;
    event.duration_ns = 10;
    LaunchView{event}.set_function(function);
    event.tid = kTid;
    return event;
  }

  // The `i`th call of a loop of 50 different ones and a pause.
  Event CallOfTheLoop(uint64_t i) {
    return Launch(1'000'000 + i * 1000 + i / kCallsOfAStep * 100'000,
                  1 + i % kCallsOfAStep);
  }

  size_t Steps() {
    feed_.Advance(uint64_t{1} << 60, uint64_t{1} << 60);
    return feed_.TakeSteps().size();
  }

  JobTables tables_;
  SeriesTable series_{tables_};
  StepFeed feed_{series_, tables_.gpu()};
};

TEST_F(StepFeedTest, FindsThePeriodOfAThread) {
  for (uint64_t i = 0; i < kCalls; ++i) feed_.Add(CallOfTheLoop(i));
  EXPECT_GT(Steps(), 40u);
}

TEST_F(StepFeedTest, IsNotLedAstrayByAThreadThatHadTheNumberBefore) {
  for (uint64_t i = 0; i < kCalls; ++i) {
    feed_.Add(CallOfTheLoop(i));
    if (i % 30 == 29) feed_.Add(Launch(i, 1000 + i));  // read late, of an earlier ring
  }
  EXPECT_GT(Steps(), 40u);
}

// Launches that are recorded in windows alone come and go with them.
TEST_F(StepFeedTest, IsNotLedAstrayByLaunchesOfWindows) {
  for (uint64_t i = 0; i < kCalls; ++i) {
    feed_.Add(CallOfTheLoop(i));
    Event launch = Launch(i, 1000 + i);
    launch.start_ns = CallOfTheLoop(i).start_ns;
    launch.flags = aggregate::kFlagAlone;
    if (i / 300 % 2 == 0) feed_.Add(launch);
  }
  EXPECT_GT(Steps(), 40u);
}

TEST_F(StepFeedTest, LooksAnewWhenANumberHasAnotherThread) {
  for (uint64_t i = 0; i < 3000; ++i) feed_.Add(Launch(i, i * i));
  EventIdentity identity;
  identity.type = EventType::kThreadStart;
  Event start;
  start.series = series_.Find(identity);
  start.start_ns = 3000;
  start.tid = kTid;
  feed_.Add(start);
  for (uint64_t i = 0; i < kCalls; ++i) feed_.Add(CallOfTheLoop(i));
  EXPECT_GT(Steps(), 40u);
}

TEST_F(StepFeedTest, TakesAllOfALoadersNextForData) {
  auto add = [&](EventType type, uint8_t variant, uint64_t start, uint64_t end,
                 uint32_t first = 0, uint32_t tid = kTid) {
    // `first`: the number of a step, the thread that began a scope.
    EventIdentity identity;
    identity.type = type;
    identity.variant = variant;
    Event event;
    event.series = series_.Find(identity);
    event.start_ns = start;
    event.duration_ns = end - start;
    if (type == EventType::kStep) {
      StepView{event}.set_number(first).set_source(variant);
    } else if (type == EventType::kScope) {
      ScopeView{event}.set_begun_by(ThreadId{first}).set_kind(variant);
    }
    event.tid = tid;
    feed_.Add(event);
  };
  add(EventType::kStep, 1, 900, 1000, 1);
  add(EventType::kGcPause, 2, 1150, 1180);  // in it
  add(EventType::kHostWait, kWaitWithinData, 1120, 1140);
  add(EventType::kScope, kScopeOfData, 1100, 1200);
  add(EventType::kGcPause, 2, 1500, 1510);
  add(EventType::kScope, 0, 1000, 2000);                    // a user's
  add(EventType::kScope, kScopeOfData, 1600, 1700, 0, 8);   // elsewhere
  add(EventType::kScope, kScopeOfData, 1600, 1700, 12345);  // ended so
  add(EventType::kStep, 1, 1000, 2000, 2);
  feed_.Advance(uint64_t{1} << 60, uint64_t{1} << 60);
  auto steps = feed_.TakeSteps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].part_ns[static_cast<size_t>(steps::Part::kData)], 100u);
  EXPECT_EQ(steps[1].part_ns[static_cast<size_t>(steps::Part::kHost)], 10u);
}

}  // namespace
}  // namespace lull::collector
