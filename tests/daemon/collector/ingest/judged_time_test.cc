#include "daemon/collector/ingest/judged_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace lull::collector {
namespace {

using aggregate::EventType;

constexpr uint64_t kSecond = 1'000'000'000;

TracingMarks Tracing(uint64_t since_ns, bool on) {
  TracingMarks marks;
  marks.Change(since_ns, on, false);
  return marks;
}

TEST(JudgedTime, GoesAsFarAsTheDeviceThatIsLeastFar) {
  JudgedTime judged;
  judged.Await(DeviceId{0});
  judged.Await(DeviceId{1});
  judged.Told(DeviceId{0}, 40 * kSecond);
  judged.Told(DeviceId{1}, 30 * kSecond);
  const TracingMarks marks = Tracing(kSecond, true);
  judged.Advance(marks, 50 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 30 * kSecond);
  judged.Told(DeviceId{1}, 20 * kSecond);
  judged.Advance(marks, 50 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 30 * kSecond) << "it never goes back";
  judged.Told(DeviceId{1}, 90 * kSecond);
  judged.Told(DeviceId{0}, 90 * kSecond);
  judged.Advance(marks, 50 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 50 * kSecond) << "not beyond what is here";
}

TEST(JudgedTime, WaitsForADeviceOnceItDoesSomething) {
  JudgedTime judged;
  const TracingMarks marks = Tracing(3 * kSecond, true);
  judged.Advance(marks, 50 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 3 * kSecond)
      << "tracing has begun, and nothing is told";
  judged.Await(DeviceId{0});
  judged.Advance(marks, 60 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 3 * kSecond);
}

TEST(JudgedTime, GoesOnWithoutTracingWhenAllIsTold) {
  JudgedTime judged;
  judged.Advance(Tracing(0, false), 50 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 50 * kSecond - kCommitSlackNs);
  judged.Await(DeviceId{0});
  judged.Told(DeviceId{0}, 55 * kSecond);
  judged.Advance(Tracing(58 * kSecond, false), 70 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 55 * kSecond) << "the rest is yet to be told";
  judged.Told(DeviceId{0}, 58 * kSecond);
  judged.Advance(Tracing(58 * kSecond, false), 70 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 70 * kSecond - kCommitSlackNs);
}

TEST(JudgedTime, KnowsWhatAnEarlierFeedTold) {
  JudgedTime judged;
  judged.Restore(10 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 10 * kSecond);
  EXPECT_EQ(judged.RestoredUntil(DeviceId{0}), 10 * kSecond);
  judged.AddRestored(EventType::kCoverage, DeviceId{0}, 12 * kSecond);
  judged.AddRestored(EventType::kCoverage, DeviceId{0}, 11 * kSecond);
  judged.AddRestored(EventType::kIdle, DeviceId{0}, 14 * kSecond);
  EXPECT_EQ(judged.RestoredUntil(DeviceId{0}), 12 * kSecond);
  EXPECT_EQ(judged.RestoredUntil(EventType::kCoverage, DeviceId{0}), 12 * kSecond);
  EXPECT_EQ(judged.RestoredUntil(EventType::kIdle, DeviceId{0}), 14 * kSecond);
  EXPECT_EQ(judged.RestoredUntil(EventType::kIdle, DeviceId{1}), 10 * kSecond);
  judged.Advance(Tracing(kSecond, true), 50 * kSecond);
  EXPECT_EQ(judged.judged_ns(), 12 * kSecond);
  EXPECT_EQ(judged.restored_ns(), 10 * kSecond);
}

TEST(JudgedTime, HasNothingLeftToJudgeAtTheEnd) {
  JudgedTime judged;
  judged.Finish();
  EXPECT_EQ(judged.judged_ns(),
            static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
}

}  // namespace
}  // namespace lull::collector
