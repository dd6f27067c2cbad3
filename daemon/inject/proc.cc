#include "daemon/inject/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/unique_fd.h"

namespace lull::inject {
namespace {

// "" when it cannot be read.
std::string ReadFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  constexpr size_t kStep = 64 << 10;
  for (;;) {
    size_t had = text.size();
    text.resize(had + kStep);
    ssize_t got = read(fd.get(), text.data() + had, kStep);
    text.resize(had + (got > 0 ? got : 0));
    if (got <= 0) return text;
  }
}

std::string TaskFile(pid_t pid, pid_t tid, const char* name) {
  return absl::StrCat("/proc/", pid, "/task/", tid, "/", name);
}

bool ParseMapping(const std::string& line, Mapping* mapping) {
  char permissions[8] = {};
  unsigned major = 0;
  unsigned minor = 0;
  int path_at = -1;
  int fields = sscanf(line.c_str(),
                      "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n",
                      &mapping->start, &mapping->end, permissions, &mapping->offset,
                      &major, &minor, &mapping->inode, &path_at);
  if (fields != 7 || mapping->end <= mapping->start) return false;
  mapping->device = makedev(major, minor);
  mapping->readable = permissions[0] == 'r';
  mapping->writable = permissions[1] == 'w';
  mapping->executable = permissions[2] == 'x';
  if (path_at >= 0) mapping->path = line.substr(path_at);
  return true;
}

}  // namespace

std::vector<Mapping> ParseMaps(std::string_view text) {
  std::vector<Mapping> maps;
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    Mapping mapping;
    if (ParseMapping(std::string(line), &mapping)) maps.push_back(std::move(mapping));
  }
  std::sort(maps.begin(), maps.end(),
            [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
  return maps;
}

std::vector<Mapping> ReadMaps(pid_t pid) {
  return ParseMaps(ReadFile(absl::StrCat("/proc/", pid, "/maps")));
}

const Mapping* FindMapping(const std::vector<Mapping>& maps, uint64_t address) {
  auto after = std::upper_bound(
      maps.begin(), maps.end(), address,
      [](uint64_t value, const Mapping& mapping) { return value < mapping.start; });
  if (after == maps.begin()) return nullptr;
  const Mapping& candidate = *(after - 1);
  return address < candidate.end ? &candidate : nullptr;
}

std::string StatusField(pid_t pid, pid_t tid, std::string_view name) {
  std::string text = ReadFile(TaskFile(pid, tid, "status"));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, absl::string_view(name.data(), name.size())) &&
        absl::ConsumePrefix(&line, ":")) {
      return std::string(absl::StripAsciiWhitespace(line));
    }
  }
  return "";
}

std::vector<pid_t> ThreadsOf(pid_t pid) {
  std::vector<pid_t> threads;
  DIR* folder = opendir(absl::StrCat("/proc/", pid, "/task").c_str());
  if (folder == nullptr) return threads;
  while (const dirent* entry = readdir(folder)) {
    pid_t tid = 0;
    if (absl::SimpleAtoi(entry->d_name, &tid)) threads.push_back(tid);
  }
  closedir(folder);
  return threads;
}

char StateOf(pid_t pid, pid_t tid) {
  std::string text = ReadFile(TaskFile(pid, tid, "stat"));
  size_t after_name = text.rfind(')');  // a name may hold anything
  if (after_name == std::string::npos || after_name + 2 >= text.size()) return 0;
  return text[after_name + 2];
}

uint64_t StackLimitOf(pid_t pid) {
  std::string text = ReadFile(absl::StrCat("/proc/", pid, "/limits"));
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
  return ParseSleeping(ReadFile(TaskFile(pid, tid, "syscall")));
}

namespace {

// When the scheduler last accounted for a thread, by the clock of its processor.
std::optional<absl::Duration> LastAccounted(const std::string& task_folder) {
  std::string text = ReadFile(task_folder + "sched");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "se.exec_start")) continue;
    double ms = 0;
    if (!absl::SimpleAtod(line.substr(line.find(':') + 1), &ms)) break;
    return absl::Milliseconds(ms);
  }
  return std::nullopt;
}

// The processor that a thread last ran on; -1 when not known.
int ProcessorOf(const std::string& task_folder) {
  constexpr int kFieldsBehindName = 36;  // field 39; the name is the second
  std::string text = ReadFile(task_folder + "stat");
  size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return -1;
  std::vector<std::string> fields = absl::StrSplit(text.substr(after_name + 2), ' ');
  int processor = -1;
  if (fields.size() <= kFieldsBehindName ||
      !absl::SimpleAtoi(fields[kFieldsBehindName], &processor)) {
    return -1;
  }
  return processor;
}

}  // namespace

std::optional<absl::Duration> AsleepFor(pid_t pid, pid_t tid) {
  const std::string folder = TaskFile(pid, tid, "");
  std::optional<absl::Duration> fell_asleep = LastAccounted(folder);
  int processor = ProcessorOf(folder);
  cpu_set_t usual;
  if (!fell_asleep || processor < 0 || processor >= CPU_SETSIZE ||
      sched_getaffinity(0, sizeof(usual), &usual) != 0) {
    return std::nullopt;
  }
  // Processors' clocks differ. So this thread goes to that one for a moment, and is
  // accounted for there when it wakes.
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(processor, &there);
  if (sched_setaffinity(0, sizeof(there), &there) != 0) return std::nullopt;
  timespec moment = {0, 1000};
  nanosleep(&moment, nullptr);
  std::optional<absl::Duration> now = LastAccounted("/proc/thread-self/");
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
