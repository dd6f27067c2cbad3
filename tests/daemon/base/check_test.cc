#include "daemon/base/check.h"

#include <gtest/gtest.h>

#include <functional>

#include "daemon/base/settled.h"

namespace lull {
namespace {

TEST(Check, GoesOnWhereItHolds) {
  int asked = 0;
  LULL_CHECK(++asked == 1, "never");
  EXPECT_EQ(asked, 1);
}

TEST(CheckDeathTest, SaysWhatIsWrongAndEndsTheProcess) {
  const int idle_ns = 5;
  EXPECT_DEATH(LULL_CHECK(idle_ns < 4, "more idle time than time"),
               "more idle time than time \\(.*check_test.cc:[0-9]+: idle_ns < 4\\)");
}

TEST(CheckDeathTest, NothingIsDroppedThatIsNotThere) {
  Settled<int, std::less<int>> queue;
  for (int i = 0; i < 3; ++i) queue.Add(i);
  queue.Settle();
  queue.DropFront(2);
  EXPECT_DEATH(queue.DropFront(2), "more is dropped than there is");
}

}  // namespace
}  // namespace lull
