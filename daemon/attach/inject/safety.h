// Whether a thread may be made to call dlopen where it is now.
//
// Pure but for what is handed in: /proc and a stopped thread give the same kind of
// answer, so a thread is judged once before it is stopped and again when it stands.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "daemon/attach/inject/arch.h"
#include "daemon/attach/inject/frame_records.h"
#include "daemon/attach/inject/landscape.h"
#include "daemon/attach/inject/proc.h"

namespace lull::inject {

// What the call may use of the thread's stack, and how much of the stack above is
// looked at.
inline constexpr uint64_t kRoom = 256 << 10;
inline constexpr uint64_t kStackLooked = 256 << 10;

// Why not; text == nullptr: it may.
struct Objection {
  const char* text = nullptr;
  bool for_good = false;  // waiting will not help this thread
  bool traced = false;    // by another process
  explicit operator bool() const { return text != nullptr; }
};

// A wait that libc makes without a lock of its own, and that comes to no harm when
// it is interrupted and begun again.
Objection AgainstWait(const Landscape& landscape, int64_t call,
                      std::span<const uint64_t, 6> arguments, uint64_t pc);

// Where the thread is and who has called it. `waits`: in a system call, so it may be in
// libc.
Objection AgainstPlace(const Landscape& landscape, const Arch& arch, uint64_t pc,
                       const Words& stack, bool waits);

// The stack that glibc has given to a thread, as it notes it in struct pthread: lowest
// address, size and size of the guard, wherever they are in there. They are told by the
// thread pointer, which lies in the last few KiB of that very stack. nullopt: a main
// thread (the kernel gives it "[stack]"), or a thread that glibc has not made.
struct Stack {
  uint64_t low = 0;   // above the guard
  uint64_t high = 0;  // the thread pointer
};
std::optional<Stack> GivenStack(const Landscape& landscape, const Arch& arch, pid_t pid,
                                uint64_t tp);

// Whether the stack pointer is in the stack that the thread was given, and room below
// it. What is below another stack (a coroutine's, a signal handler's) may be anybody's
// data, whatever maps say. `tp` = 0: not known yet.
Objection AgainstStack(const Landscape& landscape, const Arch& arch, pid_t pid,
                       pid_t tid, uint64_t sp, uint64_t tp);

// The loader's own state: a library half-way in, or a lock that this thread holds.
Objection AgainstLoader(const Landscape& landscape, pid_t pid, pid_t tid);

// The words of the stack that AgainstPlace() wants, in `into`, which holds
// kStackLooked; empty when they cannot be read.
std::span<const uint64_t> ReadStack(const Landscape& landscape, pid_t pid, uint64_t sp,
                                    std::span<uint64_t> into);

}  // namespace lull::inject
