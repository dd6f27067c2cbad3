#include "daemon/collector/ingest/store_clock.h"

#include <gtest/gtest.h>

namespace lull::collector {
namespace {

constexpr uint64_t kOneSecond = 1'000'000'000;
constexpr uint64_t kOneDay = 86'400 * kOneSecond;
constexpr uint64_t kCalendar = 20'000 * kOneDay;  // 2024

TEST(StoreClock, BeginsWithTheCalendar) {
  StoreClock clock({}, 0, {kCalendar, 5, "boot"});
  EXPECT_EQ(clock.row().now_ns, kCalendar);
  EXPECT_EQ(clock.Advance({kCalendar + 3, 8, "boot"}), kCalendar + 3);
}

TEST(StoreClock, IsNotMovedByWhoSetsTheCalendar) {
  StoreClock clock({}, 0, {kCalendar, 5, "boot"});
  EXPECT_EQ(clock.Advance({kCalendar + 3650 * kOneDay, 5 + kOneSecond, "boot"}),
            kCalendar + kOneSecond);
  EXPECT_EQ(clock.Advance({17, 5 + 2 * kOneSecond, "boot"}),
            kCalendar + 2 * kOneSecond);
  // Nor is its successor.
  StoreClock next(clock.row(), 0,
                  {kCalendar + 999 * kOneDay, 5 + 3 * kOneSecond, "boot"});
  EXPECT_EQ(next.row().now_ns, kCalendar + 3 * kOneSecond);
}

TEST(StoreClock, BelievesAWeekAtMostAcrossABoot) {
  const storage::ClockRow last{kCalendar, kCalendar, 100 * kOneDay, "old"};
  EXPECT_EQ(StoreClock(last, 0, {kCalendar + kOneDay, 7, "new"}).row().now_ns,
            kCalendar + kOneDay);
  EXPECT_EQ(StoreClock(last, 0, {kCalendar + 9999 * kOneDay, 7, "new"}).row().now_ns,
            kCalendar + 7 * kOneDay);
  EXPECT_EQ(StoreClock(last, 0, {17, 7, "new"}).row().now_ns, kCalendar);
  // Without /proc every start is a boot.
  EXPECT_EQ(
      StoreClock({kCalendar, kCalendar, 7, ""}, 0, {kCalendar + 5, 8, ""}).row().now_ns,
      kCalendar + 5);
}

TEST(StoreClock, GoesOnFromTheNewestOfAStoreThatHadNone) {
  EXPECT_EQ(StoreClock({}, kCalendar, {kCalendar + kOneDay, 7, "boot"}).row().now_ns,
            kCalendar + kOneDay);
  EXPECT_EQ(
      StoreClock({}, kCalendar, {kCalendar + 9999 * kOneDay, 7, "boot"}).row().now_ns,
      kCalendar + 7 * kOneDay);
}

}  // namespace
}  // namespace lull::collector
