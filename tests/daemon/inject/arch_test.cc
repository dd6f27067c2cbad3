// The architecture's part that needs no process.
#include "daemon/inject/arch.h"

#include <gtest/gtest.h>
#include <string.h>

#ifdef __x86_64__
#include <sys/user.h>
#endif

namespace lull::inject {
namespace {

#ifdef __x86_64__

const Arch& TheArch() { return **ThisArch(); }

Registers Make(const user_regs_struct& regs) {
  Registers registers;
  memcpy(registers.bytes.data(), &regs, sizeof(regs));
  registers.size = sizeof(regs);
  return registers;
}

user_regs_struct Take(const Registers& registers) {
  user_regs_struct regs;
  memcpy(&regs, registers.bytes.data(), sizeof(regs));
  return regs;
}

std::string_view Code(const char* bytes, size_t size) { return {bytes, size}; }

TEST(Arch, KnowsEveryShapeOfACall) {
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\xe8\x01\x02\x03\x04", 5)));
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\xff\xd0", 2)));          // *%rax
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\x41\xff\xd4", 3)));      // *%r12
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\xff\x10", 2)));          // *(%rax)
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\xff\x50\x08", 3)));      // *8(%rax)
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\xff\x14\xc8", 3)));      // *(%rax,%rcx,8)
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\xff\x54\x24\x08", 4)));  // *8(%rsp)
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\xff\x15\x01\x02\x03\x04", 6)));
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\xff\x90\x01\x02\x03\x04", 6)));
  EXPECT_TRUE(TheArch().EndsWithCall(Code("\xff\x94\x24\x01\x02\x03\x04", 7)));
}

TEST(Arch, TakesNothingElseForACall) {
  EXPECT_FALSE(TheArch().EndsWithCall(Code("\x90\x90\x90\x90\x90\x90\x90", 7)));
  EXPECT_FALSE(TheArch().EndsWithCall(Code("\xff\xe0", 2)));  // jmp *%rax
  EXPECT_FALSE(TheArch().EndsWithCall(Code("", 0)));
}

TEST(Arch, ReadsWhereErrnoIs) {
  // mov 0x10(%rip),%rax; add %fs:0,%rax; ret
  std::string_view code("\x48\x8b\x05\x10\x00\x00\x00\x64\x48\x03\x04\x25\0\0\0\0\xc3",
                        17);
  EXPECT_EQ(TheArch().ErrnoOffsetSlot(code, 0x1000), 0x1017u);
  EXPECT_EQ(TheArch().ErrnoOffsetSlot("", 0x1000), 0u);
}

TEST(Arch, AWaitIsGivenBackToTheKernelToRestart) {
  user_regs_struct regs = {};
  regs.orig_rax = 232;  // epoll_wait
  regs.rax = -EINTR;
  regs.rip = 0x1000;
  EXPECT_TRUE(TheArch().Where(Make(regs)).interrupted);
  user_regs_struct back = Take(TheArch().GivenBack(Make(regs), false));
  EXPECT_EQ(static_cast<int64_t>(back.rax), -514);
  EXPECT_EQ(back.rip, 0x1000u);

  regs.orig_rax = 16;  // ioctl, of whatever driver
  EXPECT_EQ(static_cast<int64_t>(Take(TheArch().GivenBack(Make(regs), false)).rax),
            -514);

  regs.orig_rax = 3;  // close: begun again it would close another's file
  EXPECT_FALSE(TheArch().Where(Make(regs)).interrupted);
  EXPECT_EQ(static_cast<int64_t>(Take(TheArch().GivenBack(Make(regs), false)).rax),
            -EINTR);
}

TEST(Arch, WithoutTheKernelsMemoryAPollBeginsAgainAndASleepSaysItWasCutShort) {
  user_regs_struct regs = {};
  regs.orig_rax = 7;  // poll
  regs.rax = -516;
  regs.rip = 0x1000;
  EXPECT_EQ(static_cast<int64_t>(Take(TheArch().GivenBack(Make(regs), false)).rax),
            -516);
  user_regs_struct again = Take(TheArch().GivenBack(Make(regs), true));
  EXPECT_EQ(again.rax, 7u);
  EXPECT_EQ(again.rip, 0x1000u - 2);
  EXPECT_EQ(static_cast<int64_t>(again.orig_rax), -1);
  regs.orig_rax = 35;  // nanosleep
  EXPECT_EQ(static_cast<int64_t>(Take(TheArch().GivenBack(Make(regs), true)).rax),
            -EINTR);
}

TEST(Arch, ACallIsEnteredWithAnAlignedStackAndReturnsIntoTheFrame) {
  ThreadState state;
  user_regs_struct regs = {};
  regs.rsp = 0x7fff0000;
  regs.rip = 0x401000;
  regs.rbx = 77;
  state.general = Make(regs);
  state.vector.assign(16 << 10, 0);
  for (uint64_t top = 0x7ffe0000; top < 0x7ffe0080; top += 16) {
    Frame frame = TheArch().MakeFrame(state, 0x123456, top);
    EXPECT_EQ(frame.address % 16, 8u);
    EXPECT_EQ(frame.address + frame.bytes.size(), top);
    uint64_t returns_to = 0;
    memcpy(&returns_to, frame.bytes.data(), sizeof(returns_to));
    EXPECT_EQ(returns_to, 0x123456u);
    user_regs_struct called =
        Take(TheArch().Calling(state.general, 0x500000, {1, 2, 3}, frame.address));
    EXPECT_EQ(called.rsp, frame.address);
    EXPECT_EQ(called.rip, 0x500000u);
    EXPECT_EQ(called.rdx, 3u);
    EXPECT_EQ(called.orig_rax, 39u) << "a filter may kill for -1";
  }
}

#else

TEST(Arch, SaysThatItIsNotWritten) {
  EXPECT_EQ(ThisArch().status().code(), absl::StatusCode::kUnimplemented);
}

#endif

}  // namespace
}  // namespace lull::inject
