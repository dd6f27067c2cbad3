#include "daemon/attach/examine/process.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/attach/examine/glibc_version.h"
#include "daemon/attach/examine/namespaces.h"
#include "daemon/attach/examine/seccomp.h"
#include "daemon/base/unique_fd.h"
#include "daemon/procfs/stat.h"
#include "preload/abi/segment.h"

namespace lull::attach {
namespace {

constexpr size_t kMaxMaps = 16u << 20;
constexpr size_t kMaxEnvironment = 1u << 20;
constexpr size_t kMaxArguments = 64u << 10;

template <typename Number>
Number NumberOf(absl::string_view text) {
  Number number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

Ids IdsOf(absl::string_view text) {
  Ids ids;
  std::string copy(text);
  sscanf(copy.c_str(), "%u %u %u", &ids.real, &ids.effective, &ids.saved);
  return ids;
}

// CLOCK_REALTIME of the boot, in seconds.
uint64_t BootTime(const Procfs& procfs) {
  std::string text = procfs.Read("stat", 1u << 20).text;
  size_t at = text.find("\nbtime ");
  return at == std::string::npos ? 0 : strtoull(text.c_str() + at + 7, nullptr, 10);
}

void ReadStat(const Procfs& procfs, Process* process) {
  std::string text = procfs.Read(process->pid, "stat").text;
  absl::string_view state = StatField(text, kStatState);
  if (state.empty()) return;
  process->state = state[0];
  process->start_ticks = NumberOf<uint64_t>(StatField(text, kStatStart));
  process->code_start = NumberOf<uint64_t>(StatField(text, kStatCodeStart));
  process->stack_start = NumberOf<uint64_t>(StatField(text, kStatStackStart));
  uint64_t boot = BootTime(procfs);
  auto ticks_per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  if (boot != 0) {
    process->start_realtime_ns =
        boot * 1'000'000'000u +
        process->start_ticks * (1'000'000'000u / ticks_per_second);
  }
}

bool ReadStatus(const Procfs& procfs, Process* process) {
  Procfs::Answer status = procfs.Read(process->pid, "status");
  if (!status.ok() || status.text.empty()) return false;
  auto field = [&status](absl::string_view name) {
    return StatusField(status.text, name);
  };
  process->name = std::string(field("Name"));
  process->parent = NumberOf<pid_t>(field("PPid"));
  process->tracer = NumberOf<pid_t>(field("TracerPid"));
  process->users = IdsOf(field("Uid"));
  process->groups = IdsOf(field("Gid"));
  process->threads = NumberOf<int>(field("Threads"));
  process->no_new_privs = field("NoNewPrivs") == "1";
  process->seccomp =
      static_cast<SeccompMode>(std::clamp(NumberOf<int>(field("Seccomp")), 0, 2));
  process->capabilities = strtoull(std::string(field("CapPrm")).c_str(), nullptr, 16);
  absl::string_view nspid = field("NSpid");
  process->in_inner_pid_namespace =
      nspid.find_first_of("\t ") != absl::string_view::npos;
  absl::string_view features = field("x86_Thread_features");
  process->shadow_stack = features.find("shstk") != absl::string_view::npos;
  // Kernels before 6.10 do not say; a kernel thread has no memory, and is no zombie.
  process->kernel_thread =
      field("Kthread") == "1" || (field("Kthread").empty() && field("VmSize").empty() &&
                                  (process->pid == 2 || process->parent == 2));
  process->user = UserName(process->users.effective);
  if (process->tracer != 0) {
    std::string name = procfs.Read(process->tracer, "comm").text;
    process->tracer_name = std::string(absl::StripSuffix(name, "\n"));
  }
  return true;
}

void ReadArguments(const Procfs& procfs, Process* process) {
  std::string text = procfs.Read(process->pid, "cmdline", kMaxArguments).text;
  if (text.empty()) return;
  if (text.back() == '\0') text.pop_back();
  process->arguments = absl::StrSplit(text, '\0');
}

// The files of a process that the kernel shields belong to root, not to its user; its
// folder itself does not tell.
void ReadDumpable(const Procfs& procfs, Process* process) {
  struct stat info;
  if (stat(procfs.Path(process->pid, "status").c_str(), &info) == 0) {
    process->dumpable = info.st_uid == process->users.effective;
  }
}

void ReadGpuDevices(const Procfs& procfs, Process* process) {
  for (const std::string& link : procfs.Links(process->pid, "fd")) {
    absl::string_view device(link);
    if (!absl::ConsumePrefix(&device, "/dev/nvidia")) continue;
    int number;
    if (device == "ctl") {
      process->gpu_monitor = true;
    } else if (absl::SimpleAtoi(device, &number) && number >= 0) {
      process->gpu_devices.push_back(number);
    }
  }
  std::vector<int>& devices = process->gpu_devices;
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
}

// The first word of the segment's control block (preload/abi/segment.h). Unreadable:
// who knows.
bool IsArmed(const Procfs& procfs, pid_t pid, uint64_t segment) {
  UniqueFd memory(open(procfs.Path(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC));
  uint32_t armed = 0;
  if (!memory || pread(memory.get(), &armed, sizeof armed,
                       static_cast<off_t>(segment + abi::kControlOffset)) !=
                     static_cast<ssize_t>(sizeof armed)) {
    return true;
  }
  return armed != 0;
}

void ReadInside(const Procfs& procfs, Process* process) {
  Procfs::Answer maps = procfs.Read(process->pid, "maps", kMaxMaps);
  process->readable = maps.ok() && !maps.text.empty();
  if (!process->readable) return;
  process->files = ReadMappedFiles(maps.text);
  if (process->files.shim_records) {
    process->files.shim_records = IsArmed(procfs, process->pid, process->files.segment);
  }
  process->executable = procfs.Link(process->pid, "exe").text;
  process->program = ReadProgram(procfs.Path(process->pid, "exe"));
  std::string environment = procfs.Read(process->pid, "environ", kMaxEnvironment).text;
  process->rank = ReadRank(environment);
  process->preloaded = VariableIn(environment, "LD_PRELOAD").find("liblull.so") !=
                       absl::string_view::npos;
  ReadGpuDevices(procfs, process);
  CompareNamespaces(procfs, process);
  if (!process->files.glibc.empty()) {
    process->glibc_version = ReadGlibcVersion(
        process->files.glibc,
        absl::StrCat(procfs.Path(process->pid, "root"), process->files.glibc));
  }
}

void DecideOnPython(Process* process) {
  absl::string_view program = FileName(process->executable);
  std::string& version = process->files.python_version;
  if (version.empty()) version = PythonVersionOf(program);
  process->is_python = !version.empty() || IsPythonProgram(program);
  if (!process->readable && !process->arguments.empty()) {
    process->is_python = IsPythonProgram(FileName(process->arguments[0]));
  }
}

}  // namespace

std::string UserName(uint32_t uid) {
  char buffer[4096];
  passwd entry;
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) == 0 &&
      found != nullptr) {
    return found->pw_name;
  }
  return absl::StrCat(uid);
}

Process ReadProcess(pid_t pid, const Procfs& procfs) {
  Process process;
  process.pid = pid;
  process.exists = ReadStatus(procfs, &process);
  if (!process.exists) return process;
  ReadStat(procfs, &process);
  ReadArguments(procfs, &process);
  ReadDumpable(procfs, &process);
  if (!process.kernel_thread && process.state != 'Z' && process.state != 'X') {
    ReadInside(procfs, &process);
    process.filters = CountFilters(pid, procfs);
  }
  DecideOnPython(&process);
  return process;
}

}  // namespace lull::attach
