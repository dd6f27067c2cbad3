// All that the injector knows about the processor architecture: registers, how a
// function is called and how a signal frame restores a thread. Everything else of
// this folder is the same on all of them. arch_x86_64.cc or arch_aarch64.cc is
// compiled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace lull::inject {

// Register sets as ptrace hands them out, by Arch::Parts(); only Arch looks inside.
struct Registers {
  alignas(16) std::array<uint8_t, 512> bytes = {};
  size_t size = 0;
};

// One of them: ptrace's name, and where it stands in `bytes`.
struct RegisterPart {
  int set;
  size_t offset;
  size_t size;
  bool needed;    // else zeros where this kernel or processor has no such set
  bool restored;  // else it is only read
};

// All vector state of a thread, and ptrace's name of the set that it came by.
struct VectorState {
  int set = 0;
  std::vector<uint8_t> bytes;
};

// All of a thread that a call could disturb.
struct ThreadState {
  Registers general;
  VectorState vector;
  uint64_t signal_mask = 0;
};

// Where a stopped thread is.
struct Place {
  uint64_t pc = 0;
  uint64_t sp = 0;
  uint64_t tp = 0;    // thread pointer
  int64_t call = -1;  // the system call that it was stopped in or behind, or -1
  std::array<uint64_t, 6> arguments = {};
  int64_t result = 0;
  bool interrupted = false;     // the call waits to be begun again
  uint64_t link = 0;            // a return address that is in a register; 0: none is
  uint64_t newest_record = 0;   // frame_records.h
  const char* unfit = nullptr;  // why this thread may not be made to call anything
};

// What /proc told of a thread while it slept, just before it was stopped.
struct Slept {
  int64_t call = -1;
  std::array<uint64_t, 6> arguments = {};
  uint64_t sp = 0;
  uint64_t pc = 0;
  bool until_stopped = false;  // it did not sleep a second time in between
};

// Bytes for the target's stack, with the return address lowest. (Where it is handed
// over in a register these bytes mean nothing.)
struct Frame {
  uint64_t address = 0;
  uint64_t returns_to = 0;
  std::string bytes;
};

// Without state: there is one of it.
class Arch {
 public:
  Arch(const Arch&) = delete;
  Arch& operator=(const Arch&) = delete;

  // The code of the signal-return trampoline in libc or the vDSO, to which a handler
  // returns.
  std::string_view TrampolineCode() const;
  std::span<const RegisterPart> Parts() const;
  // ptrace's names of sets with all vector state, the first that there is being the
  // one, and a size that holds it.
  std::span<const int> VectorSets() const;
  size_t MaxVectorSize() const;
  // Bytes below the stack pointer that still belong to the thread.
  uint64_t RedZone() const;
  // Where the function that tells a thread the place of its errno keeps the offset
  // from the thread pointer; 0 when the code is of a shape that is not known.
  uint64_t ErrnoOffsetSlot(std::string_view code, uint64_t address) const;
  // Whether code that ends in front of a return address ends with a call.
  bool EndsWithCall(std::string_view code) const;
  // What such code calls, when a direct call ends at `end`; 0: another kind of call.
  uint64_t CalledDirectly(std::string_view code, uint64_t end) const;
  // Whether a function that begins so keeps a frame record (frame_records.h).
  bool KeepsRecord(std::string_view code) const;
  // Which bits of a return address on the stack are the address: others may hold a
  // signature.
  uint64_t AddressMask() const;
  // Where glibc keeps its record of a thread (struct pthread), from the thread pointer:
  // below or from there on, and how far above it the thread's stack may end.
  bool RecordIsBelow() const;
  uint64_t MostAboveThreadPointer() const;

  // Completes registers of a thread that has been stopped just now by what they do not
  // tell: `code` are the four bytes before the place where it stands and the four
  // behind.
  void Recall(Registers* registers, std::string_view code,
              const std::optional<Slept>& slept) const;
  Place Where(const Registers& registers) const;

  // A timed wait that the kernel would begin anew when it restarts it (epoll_wait): its
  // limit, in the registers, less what has passed of it. Others as they are.
  Registers WithTimePassed(const Registers& registers, absl::Duration passed) const;
  // The limit of such a wait, from what /proc tells of it; nullopt: it is none.
  std::optional<absl::Duration> ForgottenLimit(
      int64_t call, const std::array<uint64_t, 6>& arguments) const;

  // A signal frame below `top` that restores `state`. The restart of a system call
  // that the kernel would have made is part of it.
  Frame MakeFrame(const ThreadState& state, uint64_t trampoline, uint64_t top) const;
  // The same registers about to enter function(a, b, c), to return into `frame`.
  Registers Calling(const Registers& registers, uint64_t function,
                    const std::array<uint64_t, 3>& arguments, const Frame& frame) const;
  // Vector state as an ABI promises it to a function that is called.
  VectorState FreshVector(const VectorState& vector) const;
  // Whether these are the registers at the entry of the system call that consumes
  // `frame`.
  bool ConsumesFrame(const Registers& registers, uint64_t frame) const;
  // From there: a harmless call is made in its place, and it is made again as soon as
  // the thread runs on.
  Registers AboutToConsume(const Registers& registers) const;
  // Where the kernel lets only the entry of a system call say with which first argument
  // it would be begun again: registers that enter one from `trampoline`, where the
  // thread stands, with that of the wait in `given`. nullopt: there is no need.
  std::optional<Registers> EntryForRestart(const Registers& trampoline,
                                           const Registers& given) const;
  // At the end of that call: as if it were the wait, and interrupted. The kernel then
  // begins it again, or not, by what signals there are for the thread.
  Registers Interrupted(const Registers& given, bool time_lost) const;
  // What a thread is given back. A wait that the stop has turned into EINTR is
  // marked for the kernel to restart it. `time_lost`: the kernel no longer knows how
  // long a timed wait has still to go.
  Registers GivenBack(const Registers& registers, bool time_lost) const;

 private:
  Arch() = default;
  friend const Arch& ThisArch();
};

const Arch& ThisArch();

}  // namespace lull::inject
