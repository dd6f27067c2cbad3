#include <asm/sigcontext.h>
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include <algorithm>

#include "daemon/attach/inject/arch.h"

namespace lull::inject {
namespace {

// The kernel's own codes for "interrupted, to be restarted"; no user sees them.
constexpr int64_t kRestartSys = -512;
constexpr int64_t kRestartNoIntr = -513;
constexpr int64_t kRestartNoHand = -514;
constexpr int64_t kRestartBlock = -516;

constexpr uint64_t kSyscallSize = 2;  // 0f 05
// In the place of a call that a thread has entered and is not to make. Number -1 would
// leave it out; but a seccomp filter is shown that number, and one that kills for what
// it does not know kills for it.
constexpr uint64_t kHarmlessCall = SYS_getpid;
constexpr uint64_t kInterruptsAllowed = 0x202;

constexpr RegisterPart kParts[] = {
    {NT_PRSTATUS, 0, sizeof(user_regs_struct), true, true}};
constexpr int kVectorSets[] = {NT_X86_XSTATE};  // x87, SSE, AVX, protection keys ...

// struct rt_sigframe of the kernel, without its siginfo, which sigreturn ignores.
struct SignalFrame {
  uint64_t return_address;
  uint64_t flags;
  uint64_t link;
  uint64_t stack_base;
  int32_t stack_flags;
  int32_t padding;
  uint64_t stack_size;
  struct {
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, flags;
    uint16_t cs, gs, fs, ss;
    uint64_t error, trap, old_mask, cr2, vector, reserved[8];
  } registers;
  uint64_t signal_mask;
};
static_assert(offsetof(SignalFrame, registers) == 8 + 40);
static_assert(sizeof(SignalFrame::registers) == 256);

constexpr uint64_t kHasVectorState = 1;   // UC_FP_XSTATE
constexpr uint64_t kHasStackSegment = 6;  // UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS
// No such mode: sigreturn leaves the alternate signal stack as it is.
constexpr int32_t kKeepAlternateStack = 0x1000;

// Layout of an XSAVE area.
constexpr size_t kControlWord = 0;
constexpr size_t kMxcsr = 24;
constexpr size_t kMxcsrMask = 28;
constexpr size_t kSoftwareBytes = 464;
constexpr size_t kFeaturesInUse = 512;
constexpr size_t kExtendedStart = 576;
constexpr uint64_t kX87AndSse = 3;
constexpr uint64_t kProtectionKeys = 1 << 9;
// Only a process that has asked the kernel for it may have it in a frame.
constexpr uint64_t kTileData = 1 << 18;

user_regs_struct Get(const Registers& registers) {
  user_regs_struct regs;
  static_assert(sizeof(regs) <= sizeof(registers.bytes));
  memcpy(&regs, registers.bytes.data(), sizeof(regs));
  return regs;
}

Registers Put(const user_regs_struct& regs) {
  Registers registers;
  memcpy(registers.bytes.data(), &regs, sizeof(regs));
  registers.size = sizeof(regs);
  return registers;
}

template <typename T>
T At(const std::vector<uint8_t>& bytes, size_t offset) {
  T value;
  memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

template <typename T>
void PutAt(std::vector<uint8_t>* bytes, size_t offset, T value) {
  memcpy(bytes->data() + offset, &value, sizeof(value));
}

// Whether a call that a stop has ended with EINTR is begun again. There are more such
// calls than any list holds (signal(7) names sockets with a time limit, epoll_wait and
// semaphores; every driver may add to them), and of one that says EINTR nothing was
// done. But the number of a closed file may be another's by now.
bool IsBegunAgain(int64_t call) { return call != SYS_close; }

bool IsRestart(int64_t result) {
  return result == kRestartSys || result == kRestartNoIntr ||
         result == kRestartNoHand || result == kRestartBlock;
}

// As the kernel would have done on the way out, but without its memory of the time
// that is left of a timed wait: such a wait begins again, and a sleep ends early and
// says so.
user_regs_struct Restarted(user_regs_struct regs) {
  int64_t call = static_cast<int64_t>(regs.orig_rax);
  int64_t result = static_cast<int64_t>(regs.rax);
  if (call < 0 || !IsRestart(result)) return regs;
  bool sleeps = call == SYS_nanosleep || call == SYS_clock_nanosleep;
  if (result == kRestartBlock && (sleeps || call == SYS_restart_syscall)) {
    regs.rax = static_cast<uint64_t>(-EINTR);
  } else {
    regs.rax = regs.orig_rax;
    regs.rip -= kSyscallSize;
  }
  regs.orig_rax = static_cast<uint64_t>(-1);  // nothing is left to the kernel
  return regs;
}

// How much of the area a frame of this thread may hold, and for which features.
void FrameExtent(const std::vector<uint8_t>& vector, size_t* size, uint64_t* features) {
  unsigned low = 0;
  unsigned ignored = 0;
  unsigned high = 0;
  __cpuid_count(0xd, 0, low, ignored, ignored, high);
  *features = low | static_cast<uint64_t>(high) << 32;
  if ((At<uint64_t>(vector, kFeaturesInUse) & kTileData) == 0) *features &= ~kTileData;
  *size = kExtendedStart;
  for (unsigned i = 2; i < 63; ++i) {
    if ((*features >> i & 1) == 0) continue;
    unsigned bytes = 0;
    unsigned offset = 0;
    unsigned unused = 0;
    __cpuid_count(0xd, i, bytes, offset, unused, unused);
    if (offset + bytes > vector.size()) {
      *features &= ~(1ull << i);
      continue;
    }
    *size = std::max<size_t>(*size, offset + bytes);
  }
}

}  // namespace

std::string_view Arch::TrampolineCode() const {
  return std::string_view("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
}
std::span<const RegisterPart> Arch::Parts() const { return kParts; }
std::span<const int> Arch::VectorSets() const { return kVectorSets; }
size_t Arch::MaxVectorSize() const { return 64 << 10; }
uint64_t Arch::RedZone() const { return 128; }
uint64_t Arch::CalledDirectly(std::string_view, uint64_t) const { return 0; }
bool Arch::KeepsRecord(std::string_view) const { return false; }
uint64_t Arch::AddressMask() const { return ~uint64_t{0}; }
bool Arch::RecordIsBelow() const { return false; }
uint64_t Arch::MostAboveThreadPointer() const { return 16 << 10; }
void Arch::Recall(Registers*, std::string_view, const std::optional<Slept>&) const {}

uint64_t Arch::ErrnoOffsetSlot(std::string_view code, uint64_t address) const {
  // mov disp32(%rip),%rax and add %fs:0,%rax, or the same in the other order.
  constexpr size_t kSize = 7;
  code = code.substr(0, 20);
  for (std::string_view load : {"\x48\x8b\x05", "\x48\x03\x05"}) {
    size_t at = code.find(load);
    if (at == std::string_view::npos || at + kSize > code.size()) continue;
    int32_t displacement;
    memcpy(&displacement, code.data() + at + 3, sizeof(displacement));
    return address + at + kSize + displacement;
  }
  return 0;
}

bool Arch::EndsWithCall(std::string_view code) const {
  auto byte = [&](size_t from_end) {
    return from_end <= code.size() ? static_cast<uint8_t>(code[code.size() - from_end])
                                   : uint8_t{0};
  };
  if (byte(5) == 0xe8) return true;  // call rel32
  // call r/m64: ff /2, with every shape of address.
  auto calls = [&](size_t length, uint8_t mode, bool scaled) {
    uint8_t modrm = byte(length - 1);
    return byte(length) == 0xff && (modrm & 0x38) == 0x10 && modrm >> 6 == mode &&
           (mode == 3 || ((modrm & 7) == 4) == scaled);
  };
  bool relative = byte(6) == 0xff && byte(5) == 0x15;  // call *disp32(%rip)
  return relative || calls(2, 3, false) || calls(2, 0, false) || calls(3, 0, true) ||
         calls(3, 1, false) || calls(4, 1, true) || calls(6, 2, false) ||
         calls(7, 2, true) || calls(7, 0, true);
}

Place Arch::Where(const Registers& registers) const {
  user_regs_struct regs = Get(registers);
  Place place;
  place.pc = regs.rip;
  place.sp = regs.rsp;
  place.tp = regs.fs_base;
  place.call = static_cast<int64_t>(regs.orig_rax);
  place.arguments = {regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9};
  place.result = static_cast<int64_t>(regs.rax);
  // Behind a handler of the program's no call is left: this EINTR is our doing.
  place.interrupted =
      place.call >= 0 &&
      (IsRestart(place.result) || (place.result == -EINTR && IsBegunAgain(place.call)));
  return place;
}

std::optional<absl::Duration> Arch::ForgottenLimit(
    int64_t call, const std::array<uint64_t, 6>& arguments) const {
  const auto limit_ms = static_cast<int32_t>(arguments[3]);
  if ((call != SYS_epoll_wait && call != SYS_epoll_pwait) || limit_ms <= 0) {
    return std::nullopt;
  }
  return absl::Milliseconds(limit_ms);
}

Registers Arch::WithTimePassed(const Registers& registers,
                               absl::Duration passed) const {
  user_regs_struct regs = Get(registers);
  Place place = Where(registers);
  if (!place.interrupted || !ForgottenLimit(place.call, place.arguments)) {
    return registers;
  }
  // The limit is the fourth argument. libc's wrapper does not use it any more behind
  // the call, and to everything else the register is scratch.
  int64_t limit_ms = static_cast<int32_t>(regs.r10);
  int64_t left_ms = limit_ms - absl::ToInt64Milliseconds(passed);
  regs.r10 = static_cast<uint64_t>(std::clamp<int64_t>(left_ms, 0, limit_ms));
  return Put(regs);
}

Frame Arch::MakeFrame(const ThreadState& state, uint64_t trampoline,
                      uint64_t top) const {
  size_t size = 0;
  uint64_t features = 0;
  const std::vector<uint8_t>& all = state.vector.bytes;
  FrameExtent(all, &size, &features);
  std::vector<uint8_t> vector(all.begin(), all.begin() + size);
  _fpx_sw_bytes software = {};
  software.magic1 = FP_XSTATE_MAGIC1;
  software.extended_size = size + FP_XSTATE_MAGIC2_SIZE;
  software.xfeatures = features;
  software.xstate_size = size;
  PutAt(&vector, kSoftwareBytes, software);
  uint32_t magic2 = FP_XSTATE_MAGIC2;
  vector.resize(size + sizeof(magic2));
  PutAt(&vector, size, magic2);

  uint64_t vector_at = (top - vector.size()) & ~uint64_t{63};
  // A function is entered with the stack pointer 8 below a multiple of 16.
  uint64_t frame_at = ((vector_at - sizeof(SignalFrame)) & ~uint64_t{15}) - 8;

  user_regs_struct r = Get(GivenBack(state.general, true));
  SignalFrame frame = {};
  frame.return_address = trampoline;
  frame.flags = kHasVectorState | kHasStackSegment;
  frame.stack_flags = kKeepAlternateStack;
  frame.registers = {r.r8,
                     r.r9,
                     r.r10,
                     r.r11,
                     r.r12,
                     r.r13,
                     r.r14,
                     r.r15,
                     r.rdi,
                     r.rsi,
                     r.rbp,
                     r.rbx,
                     r.rdx,
                     r.rax,
                     r.rcx,
                     r.rsp,
                     r.rip,
                     r.eflags,
                     static_cast<uint16_t>(r.cs),
                     static_cast<uint16_t>(r.gs),
                     static_cast<uint16_t>(r.fs),
                     static_cast<uint16_t>(r.ss),
                     0,
                     0,
                     0,
                     0,
                     vector_at,
                     {}};
  frame.signal_mask = state.signal_mask;

  Frame made;
  made.address = frame_at;
  made.returns_to = trampoline;
  made.bytes.assign(top - frame_at, '\0');
  memcpy(made.bytes.data(), &frame, sizeof(frame));
  memcpy(made.bytes.data() + (vector_at - frame_at), vector.data(), vector.size());
  return made;
}

Registers Arch::Calling(const Registers& registers, uint64_t function,
                        const std::array<uint64_t, 3>& arguments,
                        const Frame& frame) const {
  user_regs_struct regs = Get(registers);
  regs.rip = function;
  regs.rsp = frame.address;
  regs.rdi = arguments[0];
  regs.rsi = arguments[1];
  regs.rdx = arguments[2];
  regs.rax = 0;
  regs.rbp = 0;
  regs.eflags = kInterruptsAllowed;  // direction and trap flags clear
  regs.orig_rax = kHarmlessCall;
  return Put(regs);
}

VectorState Arch::FreshVector(const VectorState& state) const {
  const std::vector<uint8_t>& vector = state.bytes;
  std::vector<uint8_t> fresh = vector;
  uint32_t mask = At<uint32_t>(vector, kMxcsrMask);
  std::fill(fresh.begin(), fresh.begin() + kSoftwareBytes, 0);
  PutAt<uint16_t>(&fresh, kControlWord, 0x37f);
  PutAt<uint32_t>(&fresh, kMxcsr, 0x1f80);
  PutAt(&fresh, kMxcsrMask, mask);
  uint64_t keys = At<uint64_t>(vector, kFeaturesInUse) & kProtectionKeys;
  PutAt<uint64_t>(&fresh, kFeaturesInUse, kX87AndSse | keys);
  return {state.set, std::move(fresh)};
}

bool Arch::ConsumesFrame(const Registers& registers, uint64_t frame) const {
  user_regs_struct regs = Get(registers);
  return regs.orig_rax == SYS_rt_sigreturn &&
         static_cast<int64_t>(regs.rax) == -ENOSYS && regs.rsp == frame + 8;
}

Registers Arch::AboutToConsume(const Registers& registers) const {
  user_regs_struct regs = Get(registers);
  regs.orig_rax = kHarmlessCall;
  regs.rip -= TrampolineCode().size();
  return Put(regs);
}

// orig_rax is a register like others.
std::optional<Registers> Arch::EntryForRestart(const Registers&,
                                               const Registers&) const {
  return std::nullopt;
}
Registers Arch::Interrupted(const Registers& given, bool) const { return given; }

Registers Arch::GivenBack(const Registers& registers, bool time_lost) const {
  user_regs_struct regs = Get(registers);
  int64_t call = static_cast<int64_t>(regs.orig_rax);
  if (call >= 0 && static_cast<int64_t>(regs.rax) == -EINTR && IsBegunAgain(call)) {
    regs.rax = static_cast<uint64_t>(kRestartNoHand);
  }
  return Put(time_lost ? Restarted(regs) : regs);
}

const Arch& ThisArch() {
  static const Arch arch;
  return arch;
}

}  // namespace lull::inject
