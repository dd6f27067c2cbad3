#include "daemon/relay/process/job_life.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

lull::v1::JobEnd EndOf(const JobLife& life, uint64_t now_ns) {
  lull::v1::JobEnd end;
  life.Fill(now_ns, &end);
  return end;
}

TEST(JobLife, GoesOnUntilTheKeeperSaysOtherwise) {
  JobLife life(absl::Seconds(1));
  EXPECT_FALSE(life.IsOver(1 * kSecond, /*targets=*/false));
  EXPECT_FALSE(life.IsOver(1000 * kSecond, /*targets=*/false));
}

TEST(JobLife, ListensToTargetsThatOutliveTheJobForTheGraceTime) {
  JobLife life(absl::Seconds(2));
  life.Ended(3, 10 * kSecond);
  EXPECT_FALSE(life.IsOver(12 * kSecond, /*targets=*/true));
  EXPECT_TRUE(life.IsOver(12 * kSecond + 1, /*targets=*/true));
  EXPECT_TRUE(life.IsOver(10 * kSecond, /*targets=*/false));
}

TEST(JobLife, TellsTheEndThatTheKeeperTold) {
  JobLife life(absl::Seconds(2));
  EXPECT_EQ(EndOf(life, 7).end_ns(), 7u);
  EXPECT_FALSE(EndOf(life, 7).known());
  EXPECT_EQ(EndOf(life, 7).exit_status(), -1);
  life.Ended(137, 10 * kSecond);
  EXPECT_EQ(EndOf(life, 20 * kSecond).end_ns(), 10 * kSecond);
  EXPECT_TRUE(EndOf(life, 20 * kSecond).known());
  EXPECT_EQ(EndOf(life, 20 * kSecond).exit_status(), 137);
  life.Ended(-1, 11 * kSecond);
  EXPECT_FALSE(EndOf(life, 20 * kSecond).known());
}

TEST(JobLife, WithoutAKeeperEndsOnceAllHasBeenQuietForASecond) {
  JobLife life(absl::Seconds(2));
  life.LoseKeeper(10 * kSecond);
  EXPECT_FALSE(life.IsOver(15 * kSecond, /*targets=*/true));
  EXPECT_FALSE(life.IsOver(16 * kSecond, /*targets=*/false));
  EXPECT_TRUE(life.IsOver(16 * kSecond + 1, /*targets=*/false));
  EXPECT_EQ(life.OverFor(18 * kSecond), 2 * kSecond);
  EXPECT_FALSE(life.IsOver(18 * kSecond, /*targets=*/true));
  EXPECT_EQ(life.OverFor(18 * kSecond), 0u);
}

TEST(JobLife, WithoutAKeeperLastsAsLongAsItsOwnProcess) {
  int process[2];
  ASSERT_EQ(pipe(process), 0);
  JobLife life(absl::Seconds(2));
  life.Started(UniqueFd(process[0]));
  life.LoseKeeper(10 * kSecond);
  EXPECT_FALSE(life.IsOver(20 * kSecond, /*targets=*/false));
  close(process[1]);  // readable, as a pidfd is at the end
  EXPECT_FALSE(life.IsOver(21 * kSecond, /*targets=*/false));
  EXPECT_TRUE(life.IsOver(22 * kSecond, /*targets=*/false));
}

}  // namespace
}  // namespace lull::relay
