// The guard against everything that leaves a function by another way than its end.
#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>

#include <stdexcept>

#include "preload/hooks/guard.h"

namespace lull {
namespace {

using Body = void (*)();

// Stands for a hook: true if it was the outermost. `body` is its original.
__attribute__((noinline)) bool hook(Body body) {
  Guard guard(__builtin_frame_address(0));
  bool outermost = guard.outermost();
  if (body != nullptr) body();
  return outermost;
}

// The same, but in the manner of liblull.so: no clean-up while unwinding.
__attribute__((noinline)) void leave_mark(Body body) {
  t_thread.guard = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  body();
  t_thread.guard = 0;
}

// A frame of some size below the caller's.
__attribute__((noinline)) bool hook_from_deeper() {
  volatile char room[4096];
  room[0] = 0;
  bool outermost = hook(nullptr);
  return outermost && room[0] == 0;
}

bool g_inner_outermost;
jmp_buf g_back;

void clear() { t_thread.guard = 0; }

TEST(Guard, OnlyTheOutermostHookCounts) {
  clear();
  g_inner_outermost = true;
  EXPECT_TRUE(hook([] { g_inner_outermost = hook(nullptr); }));
  EXPECT_FALSE(g_inner_outermost);
  EXPECT_TRUE(hook(nullptr));
}

TEST(Guard, IsNotBlindedByAJumpOutOfAHook) {
  clear();
  static int round;  // not in a register that the jump would restore
  for (round = 0; round < 3; ++round) {
    if (setjmp(g_back) == 0) leave_mark([] { longjmp(g_back, 1); });
    ASSERT_NE(t_thread.guard, 0u);
    EXPECT_TRUE(hook(nullptr));
    EXPECT_EQ(t_thread.guard, 0u);
  }
}

// The commonest case: a loop around one call site, left by a jump each time.
__attribute__((noinline)) bool same_site(bool jump) {
  Guard guard(__builtin_frame_address(0));
  bool outermost = guard.outermost();
  if (jump) longjmp(g_back, 1);
  return outermost;
}

TEST(Guard, TakesOverAtTheVeryHeightOfAStaleMark) {
  clear();
  volatile int round = 0;
  setjmp(g_back);  // comes back here once more
  round = round + 1;
  bool outermost = same_site(round == 1);
  EXPECT_EQ(round, 2);
  EXPECT_TRUE(outermost);
}

TEST(Guard, IsNotBlindedByAnExceptionThatPassesAHook) {
  clear();
  EXPECT_THROW(leave_mark([] { throw std::runtime_error("through the hook"); }),
               std::runtime_error);
  ASSERT_NE(t_thread.guard, 0u);
  EXPECT_TRUE(hook(nullptr));
}

TEST(Guard, PassesThroughBelowALiveMarkHoweverDeep) {
  clear();
  g_inner_outermost = true;
  leave_mark([] { g_inner_outermost = hook_from_deeper(); });
  EXPECT_FALSE(g_inner_outermost);
}

}  // namespace
}  // namespace lull
