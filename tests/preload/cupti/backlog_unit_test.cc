// When a window may count: the device has come to what was launched in it.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "preload/cupti/backlog.h"

namespace lull::cupti {
namespace {

TEST(Backlog, IsThereUntilAKernelOfTheWindowHasEnded) {
  Backlog backlog;
  EXPECT_EQ(backlog.caught_up_ns(), 0u);
  backlog.begin(1'000'000, false);
  backlog.saw_call(70, 1'001'000);
  backlog.saw_call(71, 1'002'000);
  EXPECT_EQ(backlog.caught_up_ns(), 0u);
  backlog.saw_kernel(69, 1'500'000);  // was launched in an earlier window
  EXPECT_EQ(backlog.caught_up_ns(), 0u);
  backlog.saw_kernel(71, 2'003'500);
  EXPECT_EQ(backlog.caught_up_ns(), 2'003'500u);
  backlog.saw_kernel(70, 2'001'000);
  EXPECT_EQ(backlog.caught_up_ns(), 2'001'000u) << "the first one, known later";
  backlog.saw_kernel(69, 1'500'000);
  EXPECT_EQ(backlog.caught_up_ns(), 2'001'000u);
}

TEST(Backlog, CallsThatBeganBeforeTheWindowAreNotOfIt) {
  Backlog backlog;
  backlog.begin(1'000'000, false);
  backlog.saw_call(60, 799'000);
  backlog.saw_kernel(65, 1'500'000);
  EXPECT_EQ(backlog.caught_up_ns(), 0u);
  backlog.saw_call(70, 1'000'000);
  EXPECT_EQ(backlog.caught_up_ns(), 0u);
  backlog.saw_kernel(71, 1'600'000);
  EXPECT_EQ(backlog.caught_up_ns(), 1'600'000u);
}

TEST(Backlog, AKernelThatRanBeforeTheWindowSaysNothing) {
  Backlog backlog;
  backlog.begin(1'000'000, false);
  backlog.saw_call(70, 1'000'000);
  backlog.saw_kernel(71, 799'000);
  EXPECT_EQ(backlog.caught_up_ns(), 0u);
}

TEST(Backlog, KernelsMayBeKnownBeforeTheirCalls) {
  Backlog backlog;
  backlog.begin(1'000'000, false);
  backlog.saw_kernel(75, 1'300'000);
  backlog.saw_kernel(74, 1'200'000);
  backlog.saw_call(74, 1'100'000);
  EXPECT_EQ(backlog.caught_up_ns(), 1'200'000u);
}

TEST(Backlog, IdsBeginAnew) {
  Backlog backlog;
  backlog.begin(1'000'000, false);
  backlog.saw_call(2, 1'002'000);
  backlog.saw_call(UINT32_MAX - 1, 1'001'000);
  backlog.saw_kernel(UINT32_MAX - 3, 1'500'000);
  EXPECT_EQ(backlog.caught_up_ns(), 0u);
  backlog.saw_kernel(1, 1'600'000);
  EXPECT_EQ(backlog.caught_up_ns(), 1'600'000u);
}

TEST(Backlog, EachWindowHasItsOwn) {
  Backlog backlog;
  backlog.begin(1'000'000, true);
  EXPECT_EQ(backlog.caught_up_ns(), 1'000'000u) << "nothing had been launched";
  backlog.begin(2'000'000, false);
  EXPECT_EQ(backlog.caught_up_ns(), 0u);
  backlog.saw_call(10, 2'001'000);
  backlog.saw_kernel(10, 2'002'000);
  EXPECT_EQ(backlog.caught_up_ns(), 2'002'000u);
  backlog.begin(3'000'000, false);
  EXPECT_EQ(backlog.caught_up_ns(), 0u);
  backlog.saw_call(20, 3'001'000);
  backlog.saw_kernel(20, 3'100'000);
  EXPECT_EQ(backlog.caught_up_ns(), 3'100'000u);
}

TEST(Backlog, ACallRightAfterTheStartMaySeemToBeginBeforeIt) {
  Backlog backlog;
  backlog.begin(1'000'000, false);
  backlog.saw_call(70, 996'000);
  backlog.saw_call(71, 1'200'000);
  backlog.saw_kernel(70, 1'010'000);
  backlog.saw_kernel(71, 1'300'000);
  EXPECT_EQ(backlog.caught_up_ns(), 1'010'000u);
}

TEST(Backlog, LongTimesAreRatherTooLong) {
  constexpr uint64_t kSecond = 1'000'000'000;
  struct Case {
    uint64_t start_ns, told_ns;
  };
  for (Case one :
       {Case{1'000, 1'000}, Case{2'147'483'647, 2'147'483'647},
        Case{2'147'483'648, 2'147'484'000}, Case{60 * kSecond, 60 * kSecond + 1'000},
        Case{UINT64_MAX, 1'000 * uint64_t{INT32_MAX}}}) {
    Backlog backlog;
    backlog.begin(1'000, false);  // as early as can be
    backlog.saw_call(1, 1'000);
    backlog.saw_kernel(1, one.start_ns);
    EXPECT_EQ(backlog.caught_up_ns(), one.told_ns) << one.start_ns;
  }
}

TEST(Backlog, ThreadsMayTellAtOnce) {
  Backlog backlog;
  backlog.begin(1'000'000, false);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&backlog, t] {
      for (uint32_t i = 0; i < 10'000; ++i) {
        backlog.saw_call(100'000 + 4 * i + t, 2'000'000);
        backlog.saw_kernel(90'000 + i, 3'000'000);
        backlog.count(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(backlog.operations(), 40'000u);
  EXPECT_EQ(backlog.caught_up_ns(), 0u);  // 99,999 is before 100,000
  backlog.saw_kernel(100'000, 5'000'000);
  EXPECT_EQ(backlog.caught_up_ns(), 5'000'000u);
}

}  // namespace
}  // namespace lull::cupti
