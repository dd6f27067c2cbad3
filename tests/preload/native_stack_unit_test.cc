// native_stack() of the probe library, called from functions whose return addresses
// are known.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "preload/abi/segment.h"

namespace lull {
namespace {

template <typename Function>
Function* find(const char* name) {
  static void* probe = dlopen(LULL_STACKS_PROBE, RTLD_NOW | RTLD_LOCAL);
  if (probe == nullptr) ADD_FAILURE() << dlerror();
  return reinterpret_cast<Function*>(dlsym(probe, name));
}

uint32_t native_stack() { return find<uint32_t()>("probe_native_stack")(); }

std::vector<uintptr_t> frames_of(uint32_t ref) {
  auto* entry = find<const abi::StackEntry*(uint32_t)>("probe_stack")(ref);
  std::vector<uintptr_t> frames(entry->depth);
  memcpy(frames.data(), entry + 1, entry->depth * sizeof(uintptr_t));
  return frames;
}

uintptr_t g_returns[3];

__attribute__((noinline)) uint32_t innermost(int) {
  g_returns[0] = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  uint32_t ref = find<uint32_t()>("probe_native_stack")();
  asm volatile("" ::"r"(ref));
  return ref;
}
__attribute__((noinline)) uint32_t middle(int n) {
  g_returns[1] = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  uint32_t ref = n > 0 ? middle(n - 1) : innermost(n);
  asm volatile("" ::"r"(ref));
  return ref;
}

const char* module_of(uintptr_t address) {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(address), &info) != 0 ? info.dli_fname : "";
}

class NativeStack : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(find<int()>("probe_start")(), 1);
    ASSERT_EQ(find<uint32_t()>("probe_native_state")(),
              static_cast<uint32_t>(abi::NativeStackState::kOn));
  }
};

TEST_F(NativeStack, HoldsTheReturnAddressesInnermostFirstWithoutOurOwnFrames) {
  uint32_t ref = middle(0);
  ASSERT_NE(ref, 0u);
  std::vector<uintptr_t> frames = frames_of(ref);
  ASSERT_GT(frames.size(), 3u);
  EXPECT_STREQ(module_of(frames[0]), module_of(reinterpret_cast<uintptr_t>(&middle)));
  EXPECT_EQ(frames[1], g_returns[0]);
  EXPECT_EQ(frames[2], g_returns[1]);
  for (uintptr_t frame : frames) {
    EXPECT_EQ(strstr(module_of(frame), "probe"), nullptr) << module_of(frame);
    EXPECT_EQ(strstr(module_of(frame), "libunwind"), nullptr);
  }
}

TEST_F(NativeStack, IsOneIntegerWhenItIsTakenAgain) {
  uint32_t refs[4];
  for (uint32_t& ref : refs) ref = middle(2);
  for (uint32_t ref : refs) EXPECT_EQ(ref, refs[0]);
  EXPECT_NE(middle(3), refs[0]);
}

TEST_F(NativeStack, IsCutAtTheCap) {
  uint32_t ref = middle(200);
  auto* entry = find<const abi::StackEntry*(uint32_t)>("probe_stack")(ref);
  EXPECT_EQ(entry->depth, abi::kMaxNativeFrames);
  EXPECT_EQ(entry->flags, abi::kStackTruncated);
  EXPECT_EQ(frames_of(ref)[1], g_returns[0]);
}

TEST_F(NativeStack, IsLeftOutWhenTheGovernorSaysSo) {
  auto* thin = find<void(uint32_t)>("probe_thin");
  thin(abi::kThinNativeStacks);
  EXPECT_EQ(native_stack(), 0u);
  thin(abi::kThinNothing);
  EXPECT_NE(native_stack(), 0u);
}

TEST_F(NativeStack, WorksOnManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> bad(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&bad, t] {
      for (int i = 0; i < 500; ++i) bad[t] += native_stack() == 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, std::vector<int>(4));
}

TEST_F(NativeStack, WorksInAForkChildOfAQuietProcess) {
  pid_t pid = fork();
  if (pid == 0) {
    bool good = find<int()>("probe_start")() == 1 && native_stack() != 0;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST_F(NativeStack, IsOffInAForkChildOfAThreadThatIsUnwinding) {
  constexpr int kForks = 200;
  constexpr int kOff = 2;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&stop] {
      while (!stop) native_stack();
    });
  }
  int off = 0;
  for (int i = 0; i < kForks; ++i) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(10);  // a lock left behind would be waited for in vain
      find<int()>("probe_start")();
      bool on = native_stack() != 0;
      _exit(on ? 0 : kOff);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status)) << "fork " << i << " ended by a signal";
    off += WEXITSTATUS(status) == kOff;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(off, 0) << "no fork met a thread that was unwinding";
}

TEST_F(NativeStack, LeavesExceptionHandlingToLibgcc) {
  native_stack();
  void* raise = dlsym(RTLD_DEFAULT, "_Unwind_RaiseException");
  ASSERT_NE(raise, nullptr);
  EXPECT_EQ(strstr(module_of(reinterpret_cast<uintptr_t>(raise)), "libunwind"),
            nullptr);
}

}  // namespace
}  // namespace lull
