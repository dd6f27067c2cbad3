// What /proc says about a process and its threads, without stopping anything.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "daemon/procfs/maps.h"

namespace lull::inject {

// By address. Empty when the process is gone or may not be read.
std::vector<Mapping> ReadMaps(pid_t pid);

// The value of "NAME:" in /proc/PID/task/TID/status; "" when there is none.
std::string StatusOf(pid_t pid, pid_t tid, std::string_view name);

// 'R', 'S', 'D', 'T', 't', 'Z', ...; 0 when there is no such thread.
char StateOf(pid_t pid, pid_t tid);

// How long a thread has wanted to run and waited for a processor, so far; zero where
// the kernel does not tell (no CONFIG_SCHED_INFO) or it is gone.
absl::Duration RunDelay(pid_t pid, pid_t tid);

// The calling thread goes on on the processor that the other one last ran on, or stays
// where it is if it may not.
void GoBeside(pid_t pid, pid_t tid);

// Soft limit of the target's stack in bytes; UINT64_MAX when unlimited.
uint64_t StackLimitOf(pid_t pid);

// A thread that sleeps in a system call, from /proc/PID/task/TID/syscall.
struct Sleeping {
  int64_t call = -1;
  std::array<uint64_t, 6> arguments = {};
  uint64_t sp = 0;
  uint64_t pc = 0;
};
// nullopt: it runs, sleeps elsewhere, or may not be read.
std::optional<Sleeping> SleepingIn(pid_t pid, pid_t tid);
std::optional<Sleeping> ParseSleeping(std::string_view text);

// How long a sleeping thread has been asleep. nullopt when the kernel does not tell
// (no CONFIG_SCHED_DEBUG, or its processor is not ours to run on).
std::optional<absl::Duration> AsleepFor(pid_t pid, pid_t tid);

// True only when all `size` bytes could be read (written).
bool ReadMemory(pid_t pid, uint64_t address, void* into, size_t size);
bool WriteMemory(pid_t pid, uint64_t address, const void* from, size_t size);

// "/proc/PID/root/PATH": how we see a file of the target's mount namespace.
std::string PathThroughRoot(pid_t pid, std::string_view path);

}  // namespace lull::inject
