// Which waits and places are safe, judged on a process that is at hand: this one.
#include "daemon/attach/inject/safety.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"

namespace lull::inject {
namespace {

constexpr uint64_t kSp = 0x7000;  // of stacks that tests make up

class Safety : public testing::Test {
 protected:
  void SetUp() override {
    auto landscape = Survey(getpid(), arch_, &images_);
    ASSERT_TRUE(landscape.ok()) << landscape.status();
    landscape_ = *std::move(landscape);
  }

  bool WaitIsSafe(int64_t call, std::array<uint64_t, 6> arguments) {
    return !AgainstWait(landscape_, call, arguments, InLibc("futimes"));
  }
  bool PlaceIsSafe(uint64_t pc, std::vector<uint64_t> stack, bool waits,
                   uint64_t newest_record = 0) {
    return !AgainstPlace(landscape_, arch_, pc, {kSp, stack, newest_record}, waits);
  }
  Objection StackObjection(pid_t tid, uint64_t sp, uint64_t tp) {
    return AgainstStack(landscape_, arch_, getpid(), tid, sp, tp);
  }
  static uint64_t thread_pointer() {
    return reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  }
  // In code that is neither libc nor an allocator; under ASan this program is one.
  static uint64_t InLibrary() {
    return reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "__cxa_demangle"));
  }
  static uint64_t InLibc(const char* name) {
    return reinterpret_cast<uint64_t>(
        dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), name));
  }
  // An address behind a call instruction in a function of libc.
  uint64_t ReturnInto(const char* name) {
    auto at = InLibc(name);
    for (uint64_t i = 8; i < 400; ++i) {
      std::string_view code(reinterpret_cast<const char*>(at + i - 7), 7);
#ifdef __x86_64__  // of all shapes the one that nothing else looks like
      const bool likely = code[2] == '\xe8';
#else
      const bool likely = i % 4 == 0;
#endif
      if (likely && arch_.EndsWithCall(code)) return at + i;
    }
    return 0;
  }

  const Arch& arch_ = ThisArch();
  ImageCache images_;
  Landscape landscape_;
};

TEST_F(Safety, KnowsThisProcess) {
  EXPECT_EQ(landscape_.dlopen, InLibc("dlopen"));
  EXPECT_NE(landscape_.trampoline, 0u);
  EXPECT_NE(landscape_.debug, 0u);
  auto self = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  EXPECT_EQ(self + landscape_.errno_offset, reinterpret_cast<uint64_t>(&errno));
}

TEST_F(Safety, AConditionIsAFitWaitAndALockOfLibcIsNot) {
  EXPECT_TRUE(WaitIsSafe(SYS_futex, {0, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, 0}));
  EXPECT_FALSE(WaitIsSafe(SYS_futex, {0, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2, 0}));
  EXPECT_TRUE(WaitIsSafe(SYS_futex, {0, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 7, 0}));
  EXPECT_FALSE(WaitIsSafe(SYS_futex, {0, FUTEX_LOCK_PI, 0, 0}));
  EXPECT_TRUE(WaitIsSafe(SYS_ppoll, {}));
  EXPECT_FALSE(WaitIsSafe(SYS_connect, {}));
  EXPECT_FALSE(WaitIsSafe(SYS_write, {}));
  EXPECT_FALSE(WaitIsSafe(SYS_ioctl, {}));
  EXPECT_FALSE(WaitIsSafe(SYS_recvfrom, {0, 0, 0, 0x100}));
}

TEST_F(Safety, OwnCodeIsSafeAndLibcOnlyForAWait) {
  uint64_t own = InLibrary();
  EXPECT_TRUE(PlaceIsSafe(own, {1, 2, 3}, false));
  EXPECT_FALSE(PlaceIsSafe(InLibc("poll"), {}, false));
  EXPECT_TRUE(PlaceIsSafe(InLibc("poll"), {}, true));
  EXPECT_FALSE(PlaceIsSafe(InLibc("dlclose"), {}, true));
}

TEST_F(Safety, ACallerInForkOrTheLoaderIsNotSafe) {
  uint64_t own = InLibrary();
  uint64_t in_fork = ReturnInto("fork");
  ASSERT_NE(in_fork, 0u);
  EXPECT_FALSE(PlaceIsSafe(own, {1, in_fork, 3}, true));
  EXPECT_TRUE(PlaceIsSafe(own, {1, in_fork + 1, 3}, true)) << "not behind a call";
  EXPECT_FALSE(PlaceIsSafe(own, {landscape_.trampoline}, true)) << "a signal handler";
}

#ifdef __aarch64__

// Records are pairs: the caller's record, and the return address.
TEST_F(Safety, WhatWasLeftBehindIsToldByTheChainOfFrames) {
  const uint64_t own = InLibrary();
  const uint64_t back = ReturnInto("qsort");  // of nobody that holds a lock
  const uint64_t in_fork = ReturnInto("fork");
  ASSERT_NE(back, 0u);
  ASSERT_NE(arch_.CalledDirectly(CodeBefore(*landscape_.libc, in_fork), in_fork), 0u);
  const std::vector<uint64_t> left = {kSp + 32, back, kSp + 48, in_fork, 0, back};
  EXPECT_TRUE(PlaceIsSafe(own, left, true, kSp));
  EXPECT_TRUE(PlaceIsSafe(own, {kSp + 32, back, 5, in_fork, 0, 0}, true, kSp))
      << "a thread's first function has no caller";
  EXPECT_FALSE(PlaceIsSafe(own, left, true, 0)) << "the chain is not known";
  EXPECT_TRUE(PlaceIsSafe(own, left, true, Words::kToBeSeen)) << "perhaps";
  EXPECT_FALSE(PlaceIsSafe(own, left, true, kSp + 8)) << "not aligned";
  EXPECT_FALSE(PlaceIsSafe(own, left, true, kSp - 16)) << "below the stack";
  EXPECT_FALSE(PlaceIsSafe(own, left, true, kSp + 4096)) << "of no record at all";
  EXPECT_FALSE(
      PlaceIsSafe(own, {kSp + 16, back, kSp + 32, in_fork, 0, back}, true, kSp))
      << "it has not returned";
  EXPECT_FALSE(PlaceIsSafe(own, {kSp + 32, back, 0, in_fork, kSp, back}, true, kSp))
      << "not upwards";
  EXPECT_FALSE(PlaceIsSafe(own, {kSp + 32, back, 0, in_fork, 0, back + 4}, true, kSp))
      << "a record that is none";
}

#endif

TEST_F(Safety, TheMainThreadMayUseWhatTheKernelGaveIt) {
  auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  EXPECT_FALSE(StackObjection(getpid(), here, 0));
  EXPECT_TRUE(StackObjection(getpid() + 1, here, thread_pointer()))
      << "another thread may not";
  auto heap = std::make_unique<char[]>(4 << 20);
  landscape_.maps = ReadMaps(getpid());
  Objection objection = StackObjection(
      getpid(), reinterpret_cast<uint64_t>(heap.get()) + (3 << 20), thread_pointer());
  ASSERT_TRUE(objection);
  EXPECT_THAT(objection.text, testing::HasSubstr("coroutines"));
  EXPECT_FALSE(objection.for_good);
}

// What a thread sees of itself, from inside of it.
class StackOfAThread : public Safety {
 protected:
  // `size`, and memory that the program brings along.
  void In(size_t size, void* memory, const std::function<void(pid_t tid)>& body) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (memory != nullptr) {
      ASSERT_EQ(pthread_attr_setstack(&attributes, memory, size), 0);
    } else {
      ASSERT_EQ(pthread_attr_setstacksize(&attributes, size), 0);
    }
    std::function<void()> all = [&] {
      auto landscape = Survey(getpid(), arch_, &images_);
      ASSERT_TRUE(landscape.ok());
      landscape_ = *std::move(landscape);
      body(gettid());
    };
    pthread_t thread;
    auto start = [](void* function) -> void* {
      (*static_cast<std::function<void()>*>(function))();
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, start, &all), 0);
    pthread_join(thread, nullptr);
  }
  static uint64_t Here() {
    return reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  }
  // Where pthread_getattr_np says that this thread's stack is.
  void ExpectGivenStackIsTrue() {
    pthread_attr_t attributes;
    void* low = nullptr;
    size_t size = 0;
    ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    auto given = GivenStack(landscape_, arch_, getpid(), thread_pointer());
    ASSERT_TRUE(given);
    EXPECT_EQ(given->low, reinterpret_cast<uint64_t>(low));
    EXPECT_GT(given->high, Here());
    EXPECT_LT(given->high, given->low + size);
  }
};

TEST_F(StackOfAThread, IsFoundForEverySizeAndForMemoryOfTheProgramsOwn) {
  for (size_t size : {128ul << 10, 1ul << 20, 8ul << 20, 64ul << 20}) {
    In(size, nullptr, [&](pid_t) { ExpectGivenStackIsTrue(); });
  }
  auto memory = std::make_unique<char[]>(4 << 20);
  char* odd = memory.get() + 4096 - reinterpret_cast<uintptr_t>(memory.get()) % 64;
  In(2 << 20, odd, [&](pid_t tid) {
    ExpectGivenStackIsTrue();
    EXPECT_FALSE(StackObjection(tid, Here(), thread_pointer()));
    EXPECT_TRUE(StackObjection(tid, reinterpret_cast<uint64_t>(odd), thread_pointer()))
        << "other memory of the same mapping";
  });
}

TEST_F(StackOfAThread, MustHaveRoomAndBeItsOwn) {
  In(1 << 20, nullptr, [&](pid_t tid) {
    EXPECT_FALSE(StackObjection(tid, Here(), thread_pointer()));
    EXPECT_FALSE(StackObjection(tid, Here(), 0)) << "not known yet";
    auto given = GivenStack(landscape_, arch_, getpid(), thread_pointer());
    ASSERT_TRUE(given);
    Objection objection =
        StackObjection(tid, given->low + (200 << 10), thread_pointer());
    EXPECT_THAT(objection.text, testing::HasSubstr("256 KiB"));
    EXPECT_TRUE(objection.for_good);
    // As a thread has it that was made by clone() alone.
    objection = StackObjection(tid, Here(), landscape_.debug);
    EXPECT_THAT(objection.text, testing::HasSubstr("glibc has not made"));
    EXPECT_TRUE(objection.for_good);
  });
}

TEST(Proc, ReadsALineOfMaps) {
  auto maps = ParseMaps(
      "7f0000000000-7f0000001000 r-xp 00002000 fd:01 1234                 /a b/c.so\n"
      "not a line\n"
      "600000000000-600000001000 rw-p 00000000 00:00 0 \n");
  ASSERT_EQ(maps.size(), 2u);
  EXPECT_EQ(maps[0].start, 0x600000000000u);
  EXPECT_TRUE(maps[0].writable);
  EXPECT_EQ(maps[1].path, "/a b/c.so");
  EXPECT_EQ(maps[1].inode, 1234u);
  EXPECT_TRUE(maps[1].executable);
  EXPECT_EQ(FindMapping(maps, 0x7f0000000fff), &maps[1]);
  EXPECT_EQ(FindMapping(maps, 0x7f0000001000), nullptr);
}

TEST(Proc, ReadsWhatAThreadSleepsIn) {
  auto at = ParseSleeping("7 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffc 0x7f01\n");
  ASSERT_TRUE(at);
  EXPECT_EQ(at->call, 7);
  EXPECT_EQ(at->arguments[5], 6u);
  EXPECT_EQ(at->sp, 0x7ffcu);
  EXPECT_EQ(at->pc, 0x7f01u);
  EXPECT_FALSE(ParseSleeping("running\n"));
  EXPECT_FALSE(ParseSleeping("-1 0x7ffc 0x7f01\n"));
}

}  // namespace
}  // namespace lull::inject
