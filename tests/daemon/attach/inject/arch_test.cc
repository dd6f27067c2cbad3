// The architecture's part that needs no process.
#include "daemon/attach/inject/arch.h"

#include <elf.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/user.h>

#include <initializer_list>
#include <string>

namespace lull::inject {
namespace {

#ifdef __x86_64__

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
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\xe8\x01\x02\x03\x04", 5)));
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\xff\xd0", 2)));          // *%rax
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\x41\xff\xd4", 3)));      // *%r12
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\xff\x10", 2)));          // *(%rax)
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\xff\x50\x08", 3)));      // *8(%rax)
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\xff\x14\xc8", 3)));      // *(%rax,%rcx,8)
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\xff\x54\x24\x08", 4)));  // *8(%rsp)
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\xff\x15\x01\x02\x03\x04", 6)));
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\xff\x90\x01\x02\x03\x04", 6)));
  EXPECT_TRUE(ThisArch().EndsWithCall(Code("\xff\x94\x24\x01\x02\x03\x04", 7)));
}

TEST(Arch, TakesNothingElseForACall) {
  EXPECT_FALSE(ThisArch().EndsWithCall(Code("\x90\x90\x90\x90\x90\x90\x90", 7)));
  EXPECT_FALSE(ThisArch().EndsWithCall(Code("\xff\xe0", 2)));  // jmp *%rax
  EXPECT_FALSE(ThisArch().EndsWithCall(Code("", 0)));
}

TEST(Arch, ReadsWhereErrnoIs) {
  // mov 0x10(%rip),%rax; add %fs:0,%rax; ret
  std::string_view code("\x48\x8b\x05\x10\x00\x00\x00\x64\x48\x03\x04\x25\0\0\0\0\xc3",
                        17);
  EXPECT_EQ(ThisArch().ErrnoOffsetSlot(code, 0x1000), 0x1017u);
  EXPECT_EQ(ThisArch().ErrnoOffsetSlot("", 0x1000), 0u);
}

TEST(Arch, AWaitIsGivenBackToTheKernelToRestart) {
  user_regs_struct regs = {};
  regs.orig_rax = 232;  // epoll_wait
  regs.rax = -EINTR;
  regs.rip = 0x1000;
  EXPECT_TRUE(ThisArch().Where(Make(regs)).interrupted);
  user_regs_struct back = Take(ThisArch().GivenBack(Make(regs), false));
  EXPECT_EQ(static_cast<int64_t>(back.rax), -514);
  EXPECT_EQ(back.rip, 0x1000u);

  regs.orig_rax = 16;  // ioctl, of whatever driver
  EXPECT_EQ(static_cast<int64_t>(Take(ThisArch().GivenBack(Make(regs), false)).rax),
            -514);

  regs.orig_rax = 3;  // close: begun again it would close another's file
  EXPECT_FALSE(ThisArch().Where(Make(regs)).interrupted);
  EXPECT_EQ(static_cast<int64_t>(Take(ThisArch().GivenBack(Make(regs), false)).rax),
            -EINTR);
}

TEST(Arch, WithoutTheKernelsMemoryAPollBeginsAgainAndASleepSaysItWasCutShort) {
  user_regs_struct regs = {};
  regs.orig_rax = 7;  // poll
  regs.rax = -516;
  regs.rip = 0x1000;
  EXPECT_EQ(static_cast<int64_t>(Take(ThisArch().GivenBack(Make(regs), false)).rax),
            -516);
  user_regs_struct again = Take(ThisArch().GivenBack(Make(regs), true));
  EXPECT_EQ(again.rax, 7u);
  EXPECT_EQ(again.rip, 0x1000u - 2);
  EXPECT_EQ(static_cast<int64_t>(again.orig_rax), -1);
  regs.orig_rax = 35;  // nanosleep
  EXPECT_EQ(static_cast<int64_t>(Take(ThisArch().GivenBack(Make(regs), true)).rax),
            -EINTR);
}

TEST(Arch, ACallIsEnteredWithAnAlignedStackAndReturnsIntoTheFrame) {
  ThreadState state;
  user_regs_struct regs = {};
  regs.rsp = 0x7fff0000;
  regs.rip = 0x401000;
  regs.rbx = 77;
  state.general = Make(regs);
  state.vector = {NT_X86_XSTATE, std::vector<uint8_t>(16 << 10)};
  for (uint64_t top = 0x7ffe0000; top < 0x7ffe0080; top += 16) {
    Frame frame = ThisArch().MakeFrame(state, 0x123456, top);
    EXPECT_EQ(frame.address % 16, 8u);
    EXPECT_EQ(frame.address + frame.bytes.size(), top);
    uint64_t returns_to = 0;
    memcpy(&returns_to, frame.bytes.data(), sizeof(returns_to));
    EXPECT_EQ(returns_to, 0x123456u);
    user_regs_struct called =
        Take(ThisArch().Calling(state.general, 0x500000, {1, 2, 3}, frame));
    EXPECT_EQ(called.rsp, frame.address);
    EXPECT_EQ(called.rip, 0x500000u);
    EXPECT_EQ(called.rdx, 3u);
    EXPECT_EQ(called.orig_rax, 39u) << "a filter may kill for -1";
  }
}

#elif defined(__aarch64__)

// As Parts() has them: general registers, thread pointer, number of the call.
struct Stopped {
  user_regs_struct regs = {};
  uint64_t thread_pointer = 0;
  int32_t call = -1;
};

Registers Make(const Stopped& stopped) {
  Registers registers;
  memcpy(registers.bytes.data(), &stopped, sizeof(stopped));
  registers.size = sizeof(registers.bytes);
  return registers;
}

Stopped Take(const Registers& registers) {
  Stopped stopped;
  memcpy(&stopped, registers.bytes.data(), sizeof(stopped));
  return stopped;
}

std::string Code(std::initializer_list<uint32_t> instructions) {
  std::string code;
  for (uint32_t one : instructions) code.append(reinterpret_cast<char*>(&one), 4);
  return code;
}

constexpr uint32_t kNop = 0xd503201f;
constexpr uint32_t kSvc = 0xd4000001;

// A thread that was in `call` with the arguments 5, 6, 7, 8, 9, 10 when it was stopped.
Stopped In(int64_t call, bool restarts) {
  Stopped stopped;
  for (int i = 0; i < 6; ++i) stopped.regs.regs[i] = 5 + i;
  stopped.regs.regs[8] = call;
  stopped.regs.sp = 0x7000;
  stopped.regs.pc = restarts ? 0x1000 : 0x1004;
  if (!restarts) stopped.regs.regs[0] = -EINTR;
  return stopped;
}

Registers Recalled(const Stopped& stopped, int64_t call, uint64_t sp,
                   bool once = true) {
  Registers registers = Make(stopped);
  const bool restarts = stopped.regs.pc == 0x1000;
  Slept slept = {call, {5, 6, 7, 8, 9, 10}, sp, 0x1004, once};
  ThisArch().Recall(&registers, restarts ? Code({kNop, kSvc}) : Code({kSvc, kNop}),
                    slept);
  return registers;
}

TEST(Arch, KnowsCallsAndNothingElse) {
  EXPECT_TRUE(ThisArch().EndsWithCall(Code({kNop, 0x97fffff0})));  // bl
  EXPECT_TRUE(ThisArch().EndsWithCall(Code({0xd63f0040})));        // blr x2
  EXPECT_TRUE(ThisArch().EndsWithCall(Code({0xd73f0822})));        // blraa x1, x2
  EXPECT_TRUE(ThisArch().EndsWithCall(Code({0xd63f083f})));        // blraaz x1
  EXPECT_FALSE(ThisArch().EndsWithCall(Code({0x17fffff0})));       // b
  EXPECT_FALSE(ThisArch().EndsWithCall(Code({0xd61f0040})));       // br x2
  EXPECT_FALSE(ThisArch().EndsWithCall(Code({0xd65f03c0})));       // ret
  EXPECT_FALSE(ThisArch().EndsWithCall(""));
}

TEST(Arch, KnowsWhatIsCalledAndWhetherItKeepsARecord) {
  EXPECT_EQ(ThisArch().CalledDirectly(Code({kNop, 0x97fffff0}), 0x1008), 0x1004u - 64);
  EXPECT_EQ(ThisArch().CalledDirectly(Code({0x94000010}), 0x1004), 0x1040u);
  EXPECT_EQ(ThisArch().CalledDirectly(Code({0xd63f0040}), 0x1004), 0u) << "blr x2";
  // stp x29, x30, [sp, #-48]!; mov x29, sp
  EXPECT_TRUE(ThisArch().KeepsRecord(Code({0xa9bd7bfd, 0x910003fd})));
  // paciasp; sub sp, sp, #80; stp x29, x30, [sp, #32]; add x29, sp, #0x20
  EXPECT_TRUE(
      ThisArch().KeepsRecord(Code({0xd503233f, 0xd10143ff, 0xa9027bfd, 0x910083fd})));
  EXPECT_FALSE(ThisArch().KeepsRecord(Code({0xa9bd7bfd}))) << "x29 is not set";
  // stp x19, x30, [sp, #-32]!; mov x29, sp
  EXPECT_FALSE(ThisArch().KeepsRecord(Code({0xa9be7bf3, 0x910003fd})));
  EXPECT_FALSE(ThisArch().KeepsRecord(""));
}

TEST(Arch, ReadsWhereErrnoIs) {
  // adrp x0, +0x178000; ldr x0, [x0, #3520]; mrs x1, tpidr_el0; add x0, x1, x0; ret
  std::string code = Code({0x90000bc0, 0xf946e000, 0xd53bd041, 0x8b000020, 0xd65f03c0});
  EXPECT_EQ(ThisArch().ErrnoOffsetSlot(code, 0x27be0), 0x19fdc0u);
  EXPECT_EQ(ThisArch().ErrnoOffsetSlot(Code({0xd503245f}) + code, 0x27bdc), 0x19fdc0u)
      << "behind a bti";
  EXPECT_EQ(ThisArch().ErrnoOffsetSlot("", 0x1000), 0u);
}

TEST(Arch, AWaitThatTheKernelRestartsIsLeftAsItIs) {
  Registers ppoll = Recalled(In(73, true), 73, 0x7000);
  Place place = ThisArch().Where(ppoll);
  EXPECT_TRUE(place.interrupted);
  EXPECT_EQ(place.call, 73);
  EXPECT_EQ(place.arguments[0], 5u);
  Stopped back = Take(ThisArch().GivenBack(ppoll, false));
  EXPECT_EQ(back.regs.pc, 0x1000u);
  EXPECT_EQ(back.regs.regs[8], 73u);
  EXPECT_EQ(Take(ThisArch().GivenBack(ppoll, true)).regs.regs[8], 73u);
}

TEST(Arch, AWaitThatEndedWithEintrIsBegunAgainWithItsFirstArgument) {
  Registers epoll = Recalled(In(22, false), 22, 0x7000);
  EXPECT_TRUE(ThisArch().Where(epoll).interrupted);
  EXPECT_EQ(ThisArch().Where(epoll).arguments[0], 5u);
  Stopped back = Take(ThisArch().GivenBack(epoll, false));
  EXPECT_EQ(back.regs.pc, 0x1000u);
  EXPECT_EQ(back.regs.regs[0], 5u);
}

TEST(Arch, WithoutProofAnEintrStaysAndACallIsNotTakenForAWait) {
  EXPECT_FALSE(ThisArch().Where(Recalled(In(22, false), 22, 0x7010)).interrupted);
  EXPECT_FALSE(ThisArch().Where(Recalled(In(22, false), 73, 0x7000)).interrupted);
  EXPECT_FALSE(ThisArch().Where(Recalled(In(22, false), 22, 0x7000, false)).interrupted)
      << "it slept twice";
  EXPECT_FALSE(ThisArch().Where(Recalled(In(57, false), 57, 0x7000)).interrupted)
      << "close: begun again it would close another's file";
  EXPECT_FALSE(ThisArch().Where(Make(In(73, true))).interrupted)
      << "not known to sleep";
}

TEST(Arch, ASleepGoesOnForWhatIsLeftAndSaysItWasCutShortWithoutTheKernelsMemory) {
  Registers sleep = Recalled(In(101, true), 101, 0x7000);  // nanosleep
  EXPECT_EQ(Take(ThisArch().GivenBack(sleep, false)).regs.regs[8], 128u);
  Stopped cut = Take(ThisArch().GivenBack(sleep, true));
  EXPECT_EQ(static_cast<int64_t>(cut.regs.regs[0]), -EINTR);
  EXPECT_EQ(cut.regs.pc, 0x1004u);
}

TEST(Arch, ACallIsEnteredWithAnAlignedStackAndReturnsIntoTheFrame) {
  Stopped stopped;
  stopped.regs.sp = 0x7fff0000;
  stopped.regs.pc = 0x401000;
  stopped.regs.regs[19] = 77;
  stopped.regs.pstate = 0x60000c00;  // a comparison's result, a branch for BTI to judge
  ThreadState state;
  state.general = Make(stopped);
  state.vector = {NT_PRFPREG, std::vector<uint8_t>(528)};
  for (uint64_t top = 0x7ffe0000; top < 0x7ffe0080; top += 16) {
    Frame frame = ThisArch().MakeFrame(state, 0x123456, top);
    EXPECT_EQ(frame.address % 16, 0u);
    EXPECT_EQ(frame.address + frame.bytes.size(), top);
    Stopped called =
        Take(ThisArch().Calling(state.general, 0x500000, {1, 2, 3}, frame));
    EXPECT_EQ(called.regs.sp, frame.address);
    EXPECT_EQ(called.regs.pc, 0x500000u);
    EXPECT_EQ(called.regs.regs[0], 1u);
    EXPECT_EQ(called.regs.regs[2], 3u);
    EXPECT_EQ(called.regs.regs[30], 0x123456u);
    EXPECT_EQ(called.regs.pstate, 0u);
    EXPECT_EQ(called.call, -1);
  }
}

#endif

}  // namespace
}  // namespace lull::inject
