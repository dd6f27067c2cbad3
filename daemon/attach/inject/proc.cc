#include "daemon/attach/inject/proc.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/uio.h>
#include <time.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/stat.h"

namespace lull::inject {
namespace {

// What could be read; "" when nothing could.
std::string ReadTask(pid_t pid, pid_t tid, const char* name) {
  return Procfs().Read(absl::StrCat(pid, "/task/", tid, "/", name)).text;
}

}  // namespace

std::vector<Mapping> ReadMaps(pid_t pid) {
  return ParseMaps(Procfs().Read(pid, "maps", SIZE_MAX).text);
}

std::string StatusOf(pid_t pid, pid_t tid, std::string_view name) {
  std::string text = ReadTask(pid, tid, "status");
  return std::string(StatusField(text, absl::string_view(name.data(), name.size())));
}

char StateOf(pid_t pid, pid_t tid) {
  std::string text = ReadTask(pid, tid, "stat");
  absl::string_view state = StatField(text, kStatState);
  return state.empty() ? '\0' : state[0];
}

absl::Duration RunDelay(pid_t pid, pid_t tid) {
  // Time on a processor, time waited for one, turns
  // (Documentation/scheduler/sched-stats).
  std::vector<std::string> fields =
      absl::StrSplit(ReadTask(pid, tid, "schedstat"), ' ');
  int64_t ns = 0;
  return fields.size() == 3 && absl::SimpleAtoi(fields[1], &ns) ? absl::Nanoseconds(ns)
                                                                : absl::ZeroDuration();
}

uint64_t StackLimitOf(pid_t pid) {
  std::string text = Procfs().Read(pid, "limits").text;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "Max stack size")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    uint64_t limit = UINT64_MAX;
    return absl::SimpleAtoi(line.substr(0, line.find(' ')), &limit) ? limit
                                                                    : UINT64_MAX;
  }
  return 0;
}

std::optional<Sleeping> ParseSleeping(std::string_view text) {
  Sleeping at;
  auto& a = at.arguments;
  int fields =
      sscanf(std::string(text).c_str(),
             "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
             " %" SCNx64 " %" SCNx64 " %" SCNx64,
             &at.call, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &at.sp, &at.pc);
  if (fields != 9 || at.call < 0) return std::nullopt;
  return at;
}

std::optional<Sleeping> SleepingIn(pid_t pid, pid_t tid) {
  return ParseSleeping(ReadTask(pid, tid, "syscall"));
}

namespace {

// When the scheduler last accounted for a thread, by the clock of its processor.
std::optional<absl::Duration> LastAccounted(absl::string_view sched) {
  for (absl::string_view line : absl::StrSplit(sched, '\n')) {
    if (!absl::ConsumePrefix(&line, "se.exec_start")) continue;
    double ms = 0;
    if (!absl::SimpleAtod(line.substr(line.find(':') + 1), &ms)) break;
    return absl::Milliseconds(ms);
  }
  return std::nullopt;
}

// The processor that a thread last ran on; -1 when not known.
int ProcessorOf(absl::string_view stat) {
  int processor = -1;
  return absl::SimpleAtoi(StatField(stat, kStatProcessor), &processor) ? processor : -1;
}

bool GoTo(int processor) {
  if (processor < 0 || processor >= CPU_SETSIZE) return false;
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(processor, &there);
  return sched_setaffinity(0, sizeof(there), &there) == 0;
}

}  // namespace

void GoBeside(pid_t pid, pid_t tid) { GoTo(ProcessorOf(ReadTask(pid, tid, "stat"))); }

std::optional<absl::Duration> AsleepFor(pid_t pid, pid_t tid) {
  std::optional<absl::Duration> fell_asleep =
      LastAccounted(ReadTask(pid, tid, "sched"));
  cpu_set_t usual;
  if (!fell_asleep || sched_getaffinity(0, sizeof(usual), &usual) != 0) {
    return std::nullopt;
  }
  // Processors' clocks differ. So this thread goes to that one for a moment, and is
  // accounted for there when it wakes.
  if (!GoTo(ProcessorOf(ReadTask(pid, tid, "stat")))) return std::nullopt;
  timespec moment = {0, 1000};
  nanosleep(&moment, nullptr);
  std::optional<absl::Duration> now =
      LastAccounted(Procfs().Read("thread-self/sched").text);
  sched_setaffinity(0, sizeof(usual), &usual);
  if (!now || *now < *fell_asleep) return std::nullopt;
  return *now - *fell_asleep;
}

bool ReadMemory(pid_t pid, uint64_t address, void* into, size_t size) {
  iovec local = {into, size};
  iovec remote = {reinterpret_cast<void*>(address), size};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

bool WriteMemory(pid_t pid, uint64_t address, const void* from, size_t size) {
  iovec local = {const_cast<void*>(from), size};
  iovec remote = {reinterpret_cast<void*>(address), size};
  return process_vm_writev(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

std::string PathThroughRoot(pid_t pid, std::string_view path) {
  return absl::StrCat("/proc/", pid, "/root", std::string(path));
}

}  // namespace lull::inject
