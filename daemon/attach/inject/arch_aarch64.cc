#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>

#include "daemon/attach/inject/arch.h"

// arm64's kernel tells a tracer less than x86-64's. When a thread stops for
// PTRACE_INTERRUPT the call that it was in has been forgotten: for one that is to be
// restarted the registers already say "about to make it" (pc at the svc, x0 the first
// argument again), for one that ends with EINTR the first argument is gone (orig_x0 is
// in no register set). So what /proc told of the sleeping thread just before is
// compared with what the stop shows; only where all of it fits it is taken for the call
// that was interrupted.
namespace lull::inject {
namespace {

constexpr int kSystemCallSet = 0x404;     // NT_ARM_SYSTEM_CALL
constexpr int kThreadPointerSet = 0x401;  // NT_ARM_TLS
constexpr int kSveSet = 0x405;            // NT_ARM_SVE
constexpr int kStreamingSet = 0x40b;      // NT_ARM_SSVE
constexpr int kShadowStackSet = 0x410;    // NT_ARM_GCS

// The kernel's own codes for "interrupted, to be restarted"; no user sees them.
constexpr int64_t kRestartSys = -512;
constexpr int64_t kRestartNoHand = -514;
constexpr int64_t kRestartBlock = -516;

constexpr uint32_t kSvc = 0xd4000001;  // svc #0
constexpr uint64_t kInstruction = 4;
// In the place of a call that a thread has entered and is not to make; see x86-64's.
constexpr int32_t kHarmlessCall = SYS_getpid;
constexpr int32_t kNoCall = -1;

// Flags of the processor state that are a function's own to begin with: comparison
// results, the kind of the last branch (BTI), single step.
constexpr uint64_t kOfTheMoment = 0xf0000000 | 3 << 10 | 1 << 21;

enum class Wait : uint64_t { kNone, kRestarts, kInterrupted };

// What Arch::Parts() says, and behind it what Recall() has found out.
struct Set {
  user_pt_regs regs;
  uint64_t thread_pointer;
  int32_t call;
  uint32_t padding;
  user_sve_header streaming;
  uint64_t shadow_stack;  // its first word: features in use
  Wait wait;
  uint64_t first_argument;  // of a call that ended with EINTR
};
static_assert(sizeof(user_pt_regs) == 272);
static_assert(sizeof(Set) <= sizeof(Registers::bytes));

constexpr RegisterPart kParts[] = {
    {NT_PRSTATUS, offsetof(Set, regs), sizeof(user_pt_regs), true, true},
    {kThreadPointerSet, offsetof(Set, thread_pointer), 8, true, false},
    {kSystemCallSet, offsetof(Set, call), 4, true, true},
    {kStreamingSet, offsetof(Set, streaming), sizeof(user_sve_header), false, false},
    {kShadowStackSet, offsetof(Set, shadow_stack), 8, false, false},
};
// The first holds the second, where the processor has it.
constexpr int kVectorSets[] = {kSveSet, NT_PRFPREG};

// struct rt_sigframe of the kernel. sigreturn ignores the siginfo, where Frame keeps
// the return address that nobody needs here: it is in x30.
struct SignalFrame {
  uint8_t information[128];
  uint64_t flags;
  uint64_t link;
  uint64_t stack_base;
  int32_t stack_flags;
  int32_t padding;
  uint64_t stack_size;
  uint64_t signal_mask;
  uint8_t reserved_mask[120];
  sigcontext registers;
};
static_assert(offsetof(SignalFrame, registers) == 128 + 176);
static_assert(offsetof(sigcontext, __reserved) == 288);
// No such mode: sigreturn leaves the alternate signal stack as it is.
constexpr int32_t kKeepAlternateStack = 0x1000;

Set Get(const Registers& registers) {
  Set set;
  memcpy(&set, registers.bytes.data(), sizeof(set));
  return set;
}

Registers Put(const Set& set) {
  Registers registers;
  memcpy(registers.bytes.data(), &set, sizeof(set));
  registers.size = sizeof(set);
  return registers;
}

uint32_t InstructionAt(std::string_view code, size_t at) {
  uint32_t instruction = 0;
  if (at + kInstruction <= code.size()) memcpy(&instruction, code.data() + at, 4);
  return instruction;
}

// x86-64's reasons.
bool IsBegunAgain(uint64_t call) { return call != SYS_close; }

// The kernel remembers itself how long such a wait has still to go, and it is continued
// by restart_syscall alone.
bool IsContinued(const user_pt_regs& regs) {
  switch (regs.regs[8]) {
    case SYS_restart_syscall:
    case SYS_nanosleep:
      return true;
    case SYS_clock_nanosleep:
      return (regs.regs[1] & TIMER_ABSTIME) == 0;
    case SYS_futex:
      return (regs.regs[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && regs.regs[3] != 0;
    default:
      return false;
  }
}

// Waits that every handler ends with EINTR, SA_RESTART or not (signal(7)), among those
// that are begun again where there is no handler.
bool EndsWithHandler(const user_pt_regs& regs) {
  switch (regs.regs[8]) {
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_rt_sigsuspend:
    case SYS_clock_nanosleep:
      return true;
    case SYS_futex:  // with a time limit
      return regs.regs[3] != 0;
    default:
      return false;
  }
}

bool Sleeps(uint64_t call) {
  return call == SYS_nanosleep || call == SYS_clock_nanosleep ||
         call == SYS_restart_syscall;
}

bool SameWait(const user_pt_regs& regs, const Slept& slept, size_t from) {
  return slept.call == static_cast<int64_t>(regs.regs[8]) && slept.sp == regs.sp &&
         std::equal(slept.arguments.begin() + from, slept.arguments.end(),
                    regs.regs + from);
}

// The last of the general records in a frame: more of its room, or nothing, comes next.
template <typename Record>
void Append(sigcontext* registers, size_t* used, const Record& record) {
  memcpy(registers->__reserved + *used, &record, sizeof(record));
  *used += sizeof(record);
}

bool IsWide(const VectorState& vector, user_sve_header* header) {
  if (vector.set != kSveSet || vector.bytes.size() < sizeof(*header)) return false;
  memcpy(header, vector.bytes.data(), sizeof(*header));
  return (header->flags & SVE_PT_REGS_MASK) == SVE_PT_REGS_SVE;
}

// V0 to V31, control and status, from whichever set they came by.
fpsimd_context Narrow(const VectorState& vector) {
  fpsimd_context narrow = {};
  narrow.head = {FPSIMD_MAGIC, sizeof(narrow)};
  user_sve_header header = {};
  auto copy = [&](void* to, size_t at, size_t size) {
    if (at + size <= vector.bytes.size()) memcpy(to, vector.bytes.data() + at, size);
  };
  if (IsWide(vector, &header)) {
    const unsigned quads = sve_vq_from_vl(header.vl);
    for (unsigned i = 0; i < 32; ++i) {
      copy(&narrow.vregs[i], SVE_PT_SVE_ZREG_OFFSET(quads, i), 16);
    }
    copy(&narrow.fpsr, SVE_PT_SVE_FPSR_OFFSET(quads), 4);
    copy(&narrow.fpcr, SVE_PT_SVE_FPCR_OFFSET(quads), 4);
    return narrow;
  }
  const size_t begin = vector.set == kSveSet ? SVE_PT_FPSIMD_OFFSET : 0;
  copy(narrow.vregs, begin, sizeof(narrow.vregs));
  copy(&narrow.fpsr, begin + sizeof(narrow.vregs), 4);
  copy(&narrow.fpcr, begin + sizeof(narrow.vregs) + 4, 4);
  return narrow;
}

// Z, P and FFR. Only a thread that loses its tracer in the middle of a call needs them
// from the frame; where they do not fit (vectors of 1024 bits and more) it would get
// the lower 128 bits of each alone.
void AppendWide(const VectorState& vector, sigcontext* registers, size_t* used) {
  user_sve_header header = {};
  if (!IsWide(vector, &header)) return;
  const unsigned quads = sve_vq_from_vl(header.vl);
  const size_t size = SVE_SIG_CONTEXT_SIZE(quads);
  const size_t content = size - SVE_SIG_REGS_OFFSET;
  if (*used + size + sizeof(_aarch64_ctx) > sizeof(registers->__reserved) ||
      SVE_PT_REGS_OFFSET + content > vector.bytes.size()) {
    return;
  }
  sve_context record = {};
  record.head = {SVE_MAGIC, static_cast<uint32_t>((size + 15) & ~size_t{15})};
  record.vl = header.vl;
  memcpy(registers->__reserved + *used, &record, sizeof(record));
  memcpy(registers->__reserved + *used + SVE_SIG_REGS_OFFSET,
         vector.bytes.data() + SVE_PT_REGS_OFFSET, content);
  *used += record.head.size;
}

}  // namespace

std::string_view Arch::TrampolineCode() const {
  return std::string_view("\x68\x11\x80\xd2\x01\x00\x00\xd4",
                          8);  // mov x8, 139; svc 0
}
std::span<const RegisterPart> Arch::Parts() const { return kParts; }
std::span<const int> Arch::VectorSets() const { return kVectorSets; }
size_t Arch::MaxVectorSize() const { return SVE_PT_SIZE(16, SVE_PT_REGS_SVE); }
uint64_t Arch::RedZone() const { return 0; }
// Below the signature (PAC) and the tag of an address of 48 bits.
uint64_t Arch::AddressMask() const { return (uint64_t{1} << 48) - 1; }
bool Arch::RecordIsBelow() const { return true; }
// All thread-local variables of the program lie there.
uint64_t Arch::MostAboveThreadPointer() const { return 1 << 20; }

uint64_t Arch::ErrnoOffsetSlot(std::string_view code, uint64_t address) const {
  // adrp xN, page; ldr xM, [xN, #offset], beside mrs xK, tpidr_el0 and an add.
  constexpr size_t kLooked = 6;
  for (size_t i = 0; i < kLooked; ++i) {
    const uint32_t page = InstructionAt(code, i * kInstruction);
    const uint32_t load = InstructionAt(code, (i + 1) * kInstruction);
    if ((page & 0x9f000000) != 0x90000000 || (load & 0xffc00000) != 0xf9400000)
      continue;
    if ((load >> 5 & 31) != (page & 31)) continue;
    uint64_t pages = (page >> 29 & 3) | (page >> 5 & 0x7ffff) << 2;
    if ((pages & 1 << 20) != 0) pages |= ~uint64_t{0} << 21;
    const uint64_t offset = (load >> 10 & 0xfff) * 8;
    return ((address + i * kInstruction) & ~uint64_t{0xfff}) + (pages << 12) + offset;
  }
  return 0;
}

bool Arch::EndsWithCall(std::string_view code) const {
  if (code.size() < kInstruction) return false;
  const uint32_t last = InstructionAt(code, code.size() - kInstruction);
  // bl; blr, blraa and the like.
  return (last & 0xfc000000) == 0x94000000 || (last & 0xfefff000) == 0xd63f0000;
}

uint64_t Arch::CalledDirectly(std::string_view code, uint64_t end) const {
  if (code.size() < kInstruction) return 0;
  const uint32_t last = InstructionAt(code, code.size() - kInstruction);
  if ((last & 0xfc000000) != 0x94000000) return 0;  // bl
  const int64_t words = static_cast<int32_t>(last << 6) >> 6;
  return end - kInstruction + static_cast<uint64_t>(words * 4);
}

bool Arch::KeepsRecord(std::string_view code) const {
  bool pushed = false;
  for (size_t at = 0; at + kInstruction <= code.size(); at += kInstruction) {
    const uint32_t instruction = InstructionAt(code, at);
    // stp x29, x30, [sp, #offset], with or without moving sp.
    const uint32_t pair = instruction & 0xffc07fff;
    if (pair == 0xa9807bfd || pair == 0xa9007bfd) pushed = true;
    // add x29, sp, #offset, which is also mov x29, sp.
    if (pushed && (instruction & 0xffc003ff) == 0x910003fd) return true;
  }
  return false;
}

void Arch::Recall(Registers* registers, std::string_view code,
                  const std::optional<Slept>& slept) const {
  Set set = Get(*registers);
  const bool before = InstructionAt(code, 0) == kSvc;
  const bool behind = InstructionAt(code, kInstruction) == kSvc;
  set.wait = Wait::kNone;
  if (slept && behind && slept->pc == set.regs.pc + kInstruction &&
      SameWait(set.regs, *slept, 0)) {
    set.wait = Wait::kRestarts;
  } else if (slept && slept->until_stopped && before && slept->pc == set.regs.pc &&
             static_cast<int64_t>(set.regs.regs[0]) == -EINTR &&
             SameWait(set.regs, *slept, 1) && IsBegunAgain(set.regs.regs[8])) {
    set.wait = Wait::kInterrupted;
    set.first_argument = slept->arguments[0];
  }
  *registers = Put(set);
}

Place Arch::Where(const Registers& registers) const {
  const Set set = Get(registers);
  const auto* x = set.regs.regs;
  Place place;
  place.pc = set.regs.pc;
  place.sp = set.regs.sp;
  place.tp = set.thread_pointer;
  place.link = x[30];
  place.newest_record = x[29];
  place.arguments = {x[0], x[1], x[2], x[3], x[4], x[5]};
  place.result = static_cast<int64_t>(x[0]);
  place.interrupted = set.wait != Wait::kNone;
  if (set.wait == Wait::kInterrupted) place.arguments[0] = set.first_argument;
  if (place.interrupted) {
    place.call = static_cast<int64_t>(x[8]);
  } else if (set.call >= 0) {
    // At the entry of a call (x7 says which it is) there is no result yet.
    place.call = set.call;
    if (x[7] == 0) place.result = -ENOSYS;
  }
  if (set.streaming.size > sizeof(set.streaming)) {
    place.unfit = "computes with streaming vectors (SME)";
  }
  if ((set.shadow_stack & 1) != 0) {
    place.unfit = "runs with a guarded control stack, which forbids calls from outside";
  }
  return place;
}

std::optional<absl::Duration> Arch::ForgottenLimit(
    int64_t call, const std::array<uint64_t, 6>& arguments) const {
  const auto limit_ms = static_cast<int32_t>(arguments[3]);
  if (call != SYS_epoll_pwait || limit_ms <= 0) return std::nullopt;
  return absl::Milliseconds(limit_ms);
}

Registers Arch::WithTimePassed(const Registers& registers,
                               absl::Duration passed) const {
  Set set = Get(registers);
  const Place place = Where(registers);
  if (!place.interrupted || !ForgottenLimit(place.call, place.arguments)) {
    return registers;
  }
  const int64_t limit_ms = static_cast<int32_t>(set.regs.regs[3]);
  const int64_t left_ms = limit_ms - absl::ToInt64Milliseconds(passed);
  set.regs.regs[3] = static_cast<uint64_t>(std::clamp<int64_t>(left_ms, 0, limit_ms));
  return Put(set);
}

Frame Arch::MakeFrame(const ThreadState& state, uint64_t trampoline,
                      uint64_t top) const {
  const user_pt_regs regs = Get(GivenBack(state.general, true)).regs;
  SignalFrame frame = {};
  memcpy(frame.information, &trampoline, sizeof(trampoline));
  frame.stack_flags = kKeepAlternateStack;
  frame.signal_mask = state.signal_mask;
  std::copy(std::begin(regs.regs), std::end(regs.regs), frame.registers.regs);
  frame.registers.sp = regs.sp;
  frame.registers.pc = regs.pc;
  frame.registers.pstate = regs.pstate;
  size_t used = 0;
  Append(&frame.registers, &used, Narrow(state.vector));
  AppendWide(state.vector, &frame.registers, &used);
  Append(&frame.registers, &used, _aarch64_ctx{});

  Frame made;
  made.address = (top - sizeof(frame)) & ~uint64_t{15};
  made.returns_to = trampoline;
  made.bytes.assign(top - made.address, '\0');
  memcpy(made.bytes.data(), &frame, sizeof(frame));
  return made;
}

Registers Arch::Calling(const Registers& registers, uint64_t function,
                        const std::array<uint64_t, 3>& arguments,
                        const Frame& frame) const {
  Set set = Get(registers);
  std::copy(arguments.begin(), arguments.end(), set.regs.regs);
  set.regs.regs[29] = 0;  // no frame above
  set.regs.regs[30] = frame.returns_to;
  set.regs.sp = frame.address;
  set.regs.pc = function;
  set.regs.pstate &= ~kOfTheMoment;
  set.call = kNoCall;
  return Put(set);
}

VectorState Arch::FreshVector(const VectorState&) const {
  // Zeros: also above the lower 128 bits, as the kernel does with this set.
  return {NT_PRFPREG, std::vector<uint8_t>(sizeof(user_fpsimd_state))};
}

bool Arch::ConsumesFrame(const Registers& registers, uint64_t frame) const {
  const Set set = Get(registers);
  return set.call == SYS_rt_sigreturn && set.regs.regs[7] == 0 && set.regs.sp == frame;
}

Registers Arch::AboutToConsume(const Registers& registers) const {
  Set set = Get(registers);
  set.call = kHarmlessCall;
  set.regs.pc -= TrampolineCode().size();
  return Put(set);
}

std::optional<Registers> Arch::EntryForRestart(const Registers& trampoline,
                                               const Registers& given) const {
  const Set wait = Get(given);
  if (wait.wait == Wait::kNone) return std::nullopt;
  Set set = Get(trampoline);
  set.regs.regs[0] = Where(given).arguments[0];
  // The end of a call is the one stop at which x7 cannot be set.
  set.regs.regs[7] = wait.regs.regs[7];
  set.call = kNoCall;
  return Put(set);
}

Registers Arch::Interrupted(const Registers& given, bool time_lost) const {
  Set set = Get(given);
  user_pt_regs& regs = set.regs;
  int64_t result = kRestartSys;
  if (set.wait == Wait::kRestarts && IsContinued(regs)) {
    result = !time_lost             ? kRestartBlock
             : Sleeps(regs.regs[8]) ? -EINTR
                                    : kRestartNoHand;
  } else if (set.wait == Wait::kInterrupted || EndsWithHandler(regs)) {
    result = kRestartNoHand;
  }
  set.call = static_cast<int32_t>(regs.regs[8]);
  if (set.wait == Wait::kRestarts) regs.pc += kInstruction;
  regs.regs[0] = static_cast<uint64_t>(result);
  return Put(set);
}

Registers Arch::GivenBack(const Registers& registers, bool time_lost) const {
  Set set = Get(registers);
  user_pt_regs& regs = set.regs;
  if (set.wait == Wait::kInterrupted) {
    regs.regs[0] = set.first_argument;
    regs.pc -= kInstruction;
  } else if (set.wait == Wait::kRestarts && IsContinued(regs)) {
    if (!time_lost) {
      regs.regs[8] = SYS_restart_syscall;
    } else if (Sleeps(regs.regs[8])) {
      regs.regs[0] = static_cast<uint64_t>(-EINTR);
      regs.pc += kInstruction;
    }
  }
  set.call = kNoCall;  // nothing is left to the kernel
  return Put(set);
}

const Arch& ThisArch() {
  static const Arch arch;
  return arch;
}

}  // namespace lull::inject
