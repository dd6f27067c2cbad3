#include "daemon/relay/control/arming.h"

#include <gtest/gtest.h>

#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

constexpr uint64_t kStart = 5 * kSecond;

GpuPlan Plan(lull::v1::GpuMode mode) {
  GpuPlan plan;
  plan.mode = mode;
  return plan;
}

lull::v1::ArmCommand Arm(uint64_t number, uint64_t for_ns = 0) {
  lull::v1::ArmCommand command;
  command.set_number(number);
  command.set_armed(true);
  command.set_for_ns(for_ns);
  return command;
}

lull::v1::ArmCommand Disarm(uint64_t number) {
  lull::v1::ArmCommand command;
  command.set_number(number);
  return command;
}

TEST(Arming, OfAJobThatWasNotStartedDormantIsArmedFromItsStart) {
  Arming arming(false, kStart, GpuPlan());
  EXPECT_TRUE(arming.armed());
  EXPECT_FALSE(arming.changed());
  arming.Take(Disarm(1), 7 * kSecond);
  EXPECT_FALSE(arming.armed());
  ASSERT_TRUE(arming.changed());
  auto stretch = arming.Stretch();
  ASSERT_TRUE(stretch.has_value());
  EXPECT_EQ(stretch->number(), 1u);
  EXPECT_EQ(stretch->start_ns(), kStart);
  EXPECT_EQ(stretch->end_ns(), 7 * kSecond);
}

TEST(Arming, OfADormantJobSleepsAndHasNoStretchUntilItIsArmed) {
  Arming arming(true, kStart, GpuPlan());
  EXPECT_FALSE(arming.armed());
  EXPECT_EQ(arming.Stretch(), std::nullopt);
  arming.Update(100 * kSecond);
  EXPECT_FALSE(arming.changed());
  arming.Take(Arm(1), 9 * kSecond);
  EXPECT_TRUE(arming.armed());
  EXPECT_EQ(arming.Stretch()->number(), 1u);
  EXPECT_EQ(arming.Stretch()->start_ns(), 9 * kSecond);
  EXPECT_EQ(arming.Stretch()->end_ns(), 0u);
}

TEST(Arming, EndsByItselfWhenItsTimeIsUp) {
  Arming arming(true, kStart, GpuPlan());
  arming.Take(Arm(1, 2 * kSecond), 10 * kSecond);
  arming.Settle();
  arming.Update(12 * kSecond - 1);
  EXPECT_TRUE(arming.armed());
  EXPECT_FALSE(arming.changed());
  arming.Update(12 * kSecond + 5);
  EXPECT_FALSE(arming.armed());
  EXPECT_TRUE(arming.changed());
  EXPECT_EQ(arming.Stretch()->end_ns(), 12 * kSecond + 5);
}

TEST(Arming, TakesEachCommandOnce) {
  Arming arming(true, kStart, GpuPlan());
  arming.Take(Arm(3, 2 * kSecond), 10 * kSecond);
  arming.Settle();
  arming.Take(Arm(3, 2 * kSecond), 11 * kSecond);
  arming.Take(Disarm(2), 11 * kSecond);
  EXPECT_TRUE(arming.armed());
  EXPECT_FALSE(arming.changed());
  arming.Update(12 * kSecond);
  EXPECT_FALSE(arming.armed()) << "the repetition has not made it longer";
  EXPECT_EQ(arming.command(), 3u);
}

TEST(Arming, ALaterCommandReplacesTheOneInForceWithinItsStretch) {
  Arming arming(true, kStart, Plan(lull::v1::GPU_MODE_HOST));
  arming.Take(Arm(1, 2 * kSecond), 10 * kSecond);
  lull::v1::ArmCommand longer = Arm(2, 5 * kSecond);
  longer.mutable_gpu()->set_mode(lull::v1::GPU_MODE_CONTINUOUS);
  arming.Take(longer, 11 * kSecond);
  EXPECT_EQ(arming.plan().mode, lull::v1::GPU_MODE_CONTINUOUS);
  EXPECT_EQ(arming.Stretch()->number(), 1u);
  EXPECT_EQ(arming.Stretch()->start_ns(), 10 * kSecond);
  arming.Update(13 * kSecond);
  EXPECT_TRUE(arming.armed());
  arming.Update(16 * kSecond);
  EXPECT_FALSE(arming.armed());
  arming.Take(Arm(3), 20 * kSecond);
  EXPECT_EQ(arming.Stretch()->number(), 2u);
  EXPECT_EQ(arming.plan().mode, lull::v1::GPU_MODE_HOST) << "as the job was started";
  arming.Update(1000 * kSecond);
  EXPECT_TRUE(arming.armed()) << "until it is told";
}

TEST(Arming, DisarmingAJobThatSleepsChangesNothing) {
  Arming arming(true, kStart, GpuPlan());
  arming.Take(Disarm(1), 9 * kSecond);
  EXPECT_FALSE(arming.changed());
  EXPECT_EQ(arming.command(), 1u);
}

TEST(Arming, APlanThatCannotBeReadHasNoEffectButAnError) {
  Arming arming(true, kStart, GpuPlan());
  lull::v1::ArmCommand command = Arm(1);
  command.mutable_gpu()->set_mode(lull::v1::GPU_MODE_WINDOW);
  command.mutable_gpu()->set_schedule("wait=never");
  arming.Take(command, 9 * kSecond);
  EXPECT_FALSE(arming.armed());
  EXPECT_NE(arming.error().find("never"), std::string::npos) << arming.error();
  EXPECT_EQ(arming.command(), 1u) << "it is answered";
  arming.Take(Arm(2), 10 * kSecond);
  EXPECT_TRUE(arming.armed());
  EXPECT_EQ(arming.error(), "");
}

TEST(Arming, GoesOnWhereAnEarlierRelayLeft) {
  Arming first(true, kStart, GpuPlan());
  lull::v1::ArmCommand command = Arm(4, 10 * kSecond);
  command.mutable_gpu()->set_mode(lull::v1::GPU_MODE_WINDOW);
  command.mutable_gpu()->set_schedule("wait=2,active=3");
  first.Take(command, 20 * kSecond);

  Arming second(true, kStart, GpuPlan());
  second.Resume(*first.Stretch());
  EXPECT_TRUE(second.armed());
  EXPECT_EQ(second.plan(), first.plan());
  EXPECT_EQ(second.plan().steps.wait, 2u);
  second.Take(command, 21 * kSecond);
  EXPECT_FALSE(second.changed()) << "it has been taken";
  second.Update(30 * kSecond);
  EXPECT_FALSE(second.armed());

  Arming third(true, kStart, GpuPlan());
  third.Resume(*second.Stretch());
  EXPECT_FALSE(third.armed());
  third.Take(Arm(5), 40 * kSecond);
  EXPECT_EQ(third.Stretch()->number(), 2u);
}

TEST(Arming, AVeryLongTimeDoesNotOverflow) {
  Arming arming(true, kStart, GpuPlan());
  arming.Take(Arm(1, ~uint64_t{0}), 10 * kSecond);
  arming.Update(1'000'000 * kSecond);
  EXPECT_TRUE(arming.armed());
}

}  // namespace
}  // namespace lull::relay
