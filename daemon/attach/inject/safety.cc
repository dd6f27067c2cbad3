#include "daemon/attach/inject/safety.h"

#include <link.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

namespace lull::inject {
namespace {

const Danger* Find(const std::vector<Danger>& dangers, uint64_t address) {
  auto after = std::upper_bound(
      dangers.begin(), dangers.end(), address,
      [](uint64_t value, const Danger& danger) { return value < danger.start; });
  if (after == dangers.begin()) return nullptr;
  const Danger& candidate = *(after - 1);
  return address < candidate.end ? &candidate : nullptr;
}

// pthread_mutex_t, as it has been since glibc 2.3.
struct Mutex {
  int32_t lock;
  uint32_t count;
  int32_t owner;
  uint32_t users;
  int32_t kind;
};
constexpr int32_t kRecursive = 1;

bool IsHeldBy(const Mutex& mutex, pid_t tid) {
  return mutex.owner == tid && mutex.lock != 0 && mutex.count != 0 &&
         mutex.users != 0 && mutex.kind == kRecursive;
}

bool FutexIsFit(const Landscape& landscape, std::span<const uint64_t, 6> arguments,
                uint64_t pc) {
  int command = static_cast<int>(arguments[1]) & FUTEX_CMD_MASK;
  if (command == FUTEX_WAIT_BITSET) return true;  // conditions, semaphores, joins
  if (command != FUTEX_WAIT) return false;
  // libc's own locks wait like this: for the value 2, without a time limit. Elsewhere
  // (libstdc++, OpenMP, Go) it is a lock of the program's.
  if (static_cast<uint32_t>(arguments[2]) != 2 || arguments[3] != 0) return true;
  const Mapping* mapping = FindMapping(landscape.maps, pc);
  return mapping != nullptr && mapping->path != landscape.libc->path &&
         mapping->path.find("libpthread") == std::string::npos;
}

}  // namespace

Objection AgainstWait(const Landscape& landscape, int64_t call,
                      std::span<const uint64_t, 6> arguments, uint64_t pc) {
  switch (call) {
    case SYS_futex:
      if (FutexIsFit(landscape, arguments, pc)) return {};
      return {"waits for a lock"};
    case SYS_recvfrom:  // a part of what was asked for would be returned early
      if ((arguments[3] & MSG_WAITALL) == 0) return {};
      return {"waits in a system call that must not be interrupted"};
    case SYS_recvmsg:
      if ((arguments[2] & MSG_WAITALL) == 0) return {};
      return {"waits in a system call that must not be interrupted"};
    case SYS_semtimedop:  // a time limit would begin anew
      if (arguments[3] == 0) return {};
      return {"waits in a system call that must not be interrupted"};
    case SYS_restart_syscall:  // a sleep, poll or futex with a time limit
#ifdef SYS_poll  // younger architectures have the second of each pair alone
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
    case SYS_pause:
#endif
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_accept:
    case SYS_accept4:
    case SYS_read:
    case SYS_readv:
    case SYS_flock:
    case SYS_semop:
    case SYS_msgrcv:
      return {};
    default:
      return {"waits in a system call that must not be interrupted"};
  }
}

Objection AgainstPlace(const Landscape& landscape, const Arch& arch, uint64_t pc,
                       const Words& stack, bool waits) {
  if (Find(waits ? landscape.dangers : landscape.no_start, pc) != nullptr) {
    return {waits ? "waits inside of the loader or malloc"
                  : "runs inside of libc, the loader or malloc"};
  }
  if (FindMapping(landscape.maps, pc) == nullptr) return {"runs code that is new"};
  const uint64_t lowest = landscape.dangers.front().start;
  const uint64_t highest = landscape.dangers.back().end;
  const uint64_t mask = arch.AddressMask();
  std::optional<FrameRecords> records;
  for (size_t i = 0; i < stack.words.size(); ++i) {
    const uint64_t word = stack.words[i] & mask;
    if (word == landscape.trampoline) return {"is in a signal handler"};
    if (word < lowest || word > highest) continue;  // nearly all of them
    // A return address is behind a call, and may be behind the function's end.
    const Danger* danger = Find(landscape.dangers, word - 1);
    if (danger == nullptr || !arch.EndsWithCall(CodeBefore(*danger->object, word))) {
      continue;
    }
    if (!records) records = FrameRecords::Follow(landscape, arch, stack);
    if (!records || !records->IsLeftBehind(arch, *danger->object, word, i)) {
      return {"was called by the loader, malloc, fork or the like"};
    }
  }
  return {};
}

std::optional<Stack> GivenStack(const Landscape& landscape, const Arch& arch, pid_t pid,
                                uint64_t tp) {
  constexpr uint64_t kLargest = 1ull << 40;
  const Mapping* mapping = FindMapping(landscape.maps, tp);
  std::array<uint64_t, 320> record = {};
  if (mapping == nullptr || tp % 8 != 0) return std::nullopt;
  const bool below = arch.RecordIsBelow();
  const uint64_t room = below ? tp - mapping->start : mapping->end - tp;
  const uint64_t size = std::min(room, uint64_t{sizeof(record)});
  const uint64_t from = below ? tp - size : tp;
  if (!ReadMemory(pid, from, record.data(), size)) return std::nullopt;
  const size_t words = size / sizeof(uint64_t);
  for (size_t i = 0; i + 2 < words; ++i) {
    // From the thread pointer on: farther below may be the thread's own data.
    const size_t at = below ? words - 3 - i : i;
    const uint64_t base = record[at];
    const uint64_t bytes = record[at + 1];
    const uint64_t guard = record[at + 2];
    const bool fits = base < tp && bytes < kLargest && guard < bytes &&
                      tp - base < bytes &&
                      base + bytes - tp <= arch.MostAboveThreadPointer();
    // A guard need not be in maps.
    if (fits && FindMapping(landscape.maps, base + guard) != nullptr) {
      return Stack{.low = base + guard, .high = tp};
    }
  }
  return std::nullopt;
}

Objection AgainstStack(const Landscape& landscape, const Arch& arch, pid_t pid,
                       pid_t tid, uint64_t sp, uint64_t tp) {
  const Mapping* mapping = FindMapping(landscape.maps, sp);
  if (mapping == nullptr || !mapping->writable) return {"has a stack that is new"};
  const uint64_t low = sp - arch.RedZone() - kRoom;
  constexpr Objection kTooSmall = {"has less than 256 KiB of stack left", true};
  if (sp < kRoom + arch.RedZone()) return kTooSmall;
  const bool is_main = tid == landscape.main_thread;
  if (mapping->path == "[stack]" && is_main) {  // grows on demand
    constexpr uint64_t kGap = 1 << 20;
    bool allowed = mapping->end - low <= landscape.stack_limit;
    bool free = mapping == landscape.maps.data() || (mapping - 1)->end + kGap <= low;
    if (mapping->start > low && !(allowed && free)) return {kTooSmall.text, false};
    return {};
  }
  if (tp == 0) return {};
  // The main thread of a child that another thread has forked has that one's stack.
  std::optional<Stack> given = GivenStack(landscape, arch, pid, tp);
  if (!given && !is_main) return {"has a stack that glibc has not made", true};
  if (!given || sp < given->low || sp >= given->high) {
    return {"runs on a stack that is not its own, as coroutines do"};
  }
  return std::max(mapping->start, given->low) > low ? kTooSmall : Objection{};
}

Objection AgainstLoader(const Landscape& landscape, pid_t pid, pid_t tid) {
  if (landscape.debug != 0) {
    r_debug debug;
    if (!ReadMemory(pid, landscape.debug, &debug, sizeof(debug))) {
      return {"cannot be read"};
    }
    if (debug.r_state != r_debug::RT_CONSISTENT) return {"a library is being loaded"};
  }
  constexpr uint64_t kLargest = 64 << 10;
  if (landscape.loader_state_size > kLargest) return {};
  std::vector<uint8_t> state(landscape.loader_state_size);
  if (!ReadMemory(pid, landscape.loader_state, state.data(), state.size())) {
    return {"cannot be read"};
  }
  for (size_t at = 0; at + sizeof(Mutex) <= state.size(); at += 8) {
    Mutex mutex;
    memcpy(&mutex, state.data() + at, sizeof(mutex));
    if (IsHeldBy(mutex, tid)) return {"holds the loader's lock"};
  }
  return {};
}

std::span<const uint64_t> ReadStack(const Landscape& landscape, pid_t pid, uint64_t sp,
                                    std::span<uint64_t> into) {
  const Mapping* mapping = FindMapping(landscape.maps, sp);
  if (mapping == nullptr) return {};
  uint64_t size = std::min(mapping->end - sp, into.size_bytes()) & ~uint64_t{7};
  if (!ReadMemory(pid, sp, into.data(), size)) return {};
  return into.first(size / 8);
}

}  // namespace lull::inject
