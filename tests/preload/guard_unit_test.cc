// The guard against everything that leaves a function by another way than its end.
#include <gtest/gtest.h>
#include <setjmp.h>

#include <vector>

#include "preload/hooks/guard.h"

namespace lull {
namespace {

using Body = void (*)();

void nothing() {}

// Stands for a hook: true if it was the outermost. `body` is its original.
__attribute__((noinline)) bool hook(Layer layer = Layer::kRuntime,
                                    Body body = nothing) {
  Guard guard(__builtin_frame_address(0), layer);
  bool outermost = guard.outermost();
  body();
  return outermost;
}

// The same, whose `body` is our own work after the original.
__attribute__((noinline)) bool recorder(Body body) {
  Guard guard(__builtin_frame_address(0), Layer::kRuntime);
  guard.own_work(__builtin_frame_address(0));
  body();
  return guard.outermost();
}

// A frame of some size below the caller's.
__attribute__((noinline)) bool hook_from_deeper(Layer layer) {
  volatile char room[4096];
  room[0] = 0;
  bool outermost = hook(layer);
  return outermost && room[0] == 0;
}

// How many hooks of a deeper frame go by before one is the outermost.
int passed_through(Layer layer) {
  int passed = 0;
  while (!hook_from_deeper(layer)) ++passed;
  return passed;
}

jmp_buf g_back;
void jump_back() { longjmp(g_back, 1); }

// A mark left behind by a jump. `leave` calls a hook whose body is jump_back().
template <typename Leave>
void jump_out(Leave leave) {
  if (setjmp(g_back) == 0) leave();
}

__attribute__((noinline)) bool own_call(Body body) {
  OwnCall own(__builtin_frame_address(0));
  body();
  return own.nested();
}

bool g_inner_outermost;

class GuardTest : public ::testing::Test {
 protected:
  GuardTest() {
    t_thread.mark = 0;
    abi::SegmentView(segment_.data()).control().armed = 1;
    g_state->segment = segment_.data();
    g_state->mode = Mode::kRecording;
  }
  ~GuardTest() override {
    g_state->mode = Mode::kUnknown;
    g_state->segment = nullptr;
  }
  uint64_t counted() { return abi::SegmentView(segment_.data()).header().reentered; }

 private:
  std::vector<char> segment_ = std::vector<char>(2 * abi::kPage);
};

TEST_F(GuardTest, OnlyTheOutermostHookCounts) {
  g_inner_outermost = true;
  EXPECT_TRUE(hook(Layer::kRuntime, [] { g_inner_outermost = hook(Layer::kDriver); }));
  EXPECT_FALSE(g_inner_outermost);
  EXPECT_TRUE(hook());
  EXPECT_EQ(counted(), 0u);
}

TEST_F(GuardTest, PassesThroughBelowALiveMarkHoweverDeep) {
  g_inner_outermost = true;
  hook(Layer::kTorch,
       [] { g_inner_outermost = hook_from_deeper(Layer::kTorchReport); });
  EXPECT_FALSE(g_inner_outermost);
}

TEST_F(GuardTest, LetsAWaitBeInterruptedByASignalHandlersCalls) {
  hook(Layer::kWait, [] { g_inner_outermost = hook_from_deeper(Layer::kWait); });
  EXPECT_TRUE(g_inner_outermost);
  EXPECT_EQ(counted(), 0u);
}

TEST_F(GuardTest, CountsWhatIsMetInsideOurOwnWork) {
  recorder([] { g_inner_outermost = hook_from_deeper(Layer::kWait); });
  EXPECT_FALSE(g_inner_outermost);
  EXPECT_EQ(counted(), 1u);
}

// A signal handler's stack may lie above the thread's: its frames are no sign of a
// jump.
TEST_F(GuardTest, LetsNobodyFromAStackAboveIntoOurOwnWork) {
  for (Layer ours : {Layer::kLibrary, Layer::kOwnWork}) {
    auto mark = mark_of(reinterpret_cast<void*>(uintptr_t{16}), ours);
    t_thread.mark = mark;
    EXPECT_FALSE(hook());
    EXPECT_FALSE(hook(Layer::kWait));
    EXPECT_EQ(t_thread.mark & ~kMarkPassed, mark);
    EXPECT_TRUE(own_call(nothing));
    EXPECT_EQ(t_thread.mark & ~kMarkPassed, mark) << "an own call of the handler";
  }
  EXPECT_EQ(counted(), 4u);
}

// What lies below may be the library's own calls.
TEST_F(GuardTest, CountsEachCallOfAHandlerAboveALibraryOnce) {
  t_thread.mark = mark_of(reinterpret_cast<void*>(uintptr_t{16}), Layer::kLibrary);
  for (int i = 0; i < 4000; ++i) EXPECT_FALSE(hook());
  EXPECT_EQ(counted(), 4000u);
  t_thread.mark |= mark_of(reinterpret_cast<void*>(~uintptr_t{15}), Layer::kLibrary);
  for (int i = 0; i < 96; ++i) EXPECT_FALSE(hook());
  EXPECT_EQ(counted(), 4000u);
  EXPECT_TRUE(hook()) << "nobody is there any more who holds it";
  EXPECT_EQ(counted(), 4096u);
}

TEST_F(GuardTest, IsNotBlindedByAJumpOutOfAHook) {
  static int round;  // not in a register that the jump would restore
  for (round = 0; round < 3; ++round) {
    jump_out([] { hook(Layer::kRuntime, jump_back); });
    ASSERT_NE(t_thread.mark, 0u);
    EXPECT_TRUE(hook());
    EXPECT_EQ(t_thread.mark, 0u);
  }
}

// The commonest case: a loop around one call site, left by a jump each time.
__attribute__((noinline)) bool same_site(bool jump) {
  Guard guard(__builtin_frame_address(0), Layer::kRuntime);
  bool outermost = guard.outermost();
  if (jump) longjmp(g_back, 1);
  return outermost;
}

TEST_F(GuardTest, TakesOverAtTheVeryHeightOfAStaleMark) {
  volatile int round = 0;
  setjmp(g_back);  // comes back here once more
  round = round + 1;
  bool outermost = same_site(round == 1);
  EXPECT_EQ(round, 2);
  EXPECT_TRUE(outermost);
}

TEST_F(GuardTest, IsNotBlindedForADeeperCallByAJumpOutOfAWait) {
  for (Layer layer : {Layer::kWait, Layer::kDriver, Layer::kTorch}) {
    jump_out([] { hook(Layer::kWait, jump_back); });
    ASSERT_NE(t_thread.mark, 0u);
    EXPECT_EQ(passed_through(layer), 0);
  }
  EXPECT_EQ(counted(), 0u);
}

TEST_F(GuardTest, CountsTheFewDeeperCallsThatAJumpOutOfCudaCosts) {
  jump_out([] { hook(Layer::kRuntime, jump_back); });
  EXPECT_EQ(passed_through(Layer::kRuntime), 8);
  EXPECT_EQ(counted(), 8u);
}

TEST_F(GuardTest, EndsAMarkThatTooManyWaitsLieBelow) {
  jump_out([] { hook(Layer::kRuntime, jump_back); });
  EXPECT_EQ(passed_through(Layer::kWait), 4096);
  EXPECT_EQ(counted(), 4096u);
}

TEST_F(GuardTest, EndsAMarkOfOwnWorkThatWasJumpedOutOf) {
  jump_out([] { recorder(jump_back); });
  EXPECT_EQ(passed_through(Layer::kWait), 4096);
  EXPECT_EQ(counted(), 4096u);
}

// A mark on a stack that is not there any more is compared, and never looked at.
TEST_F(GuardTest, ReadsNothingOfAMarksFrame) {
  t_thread.mark = mark_of(reinterpret_cast<void*>(~uintptr_t{15}), Layer::kRuntime);
  EXPECT_EQ(passed_through(Layer::kDriver), 4096);
}

TEST_F(GuardTest, OwnCallsPassAllThroughAndLeaveTheMarkAsItWas) {
  EXPECT_FALSE(own_call([] { g_inner_outermost = hook_from_deeper(Layer::kWait); }));
  EXPECT_FALSE(g_inner_outermost);
  EXPECT_EQ(t_thread.mark, 0u);
  static uintptr_t before;
  hook(Layer::kRuntime, [] {
    before = t_thread.mark;
    EXPECT_TRUE(own_call(nothing));
    EXPECT_EQ(t_thread.mark, before);
  });
  EXPECT_EQ(counted(), 0u);
}

}  // namespace
}  // namespace lull
