#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/base/environment.h"
#include "cli/doctor/check.h"
#include "cli/doctor/command.h"
#include "cli/doctor/interpreters.h"
#include "daemon/base/unique_fd.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/stat.h"

namespace lull {
namespace {

constexpr int kOldestGlibcMinor = 28;
constexpr absl::Duration kTimeToAnswer = absl::Seconds(20);

// The libc of the programs here; lull has one of its own.
std::string VersionOfGlibc() {
  std::vector<std::vector<std::string>> commands = {{"getconf", "GNU_LIBC_VERSION"}};
  for (const std::string& python : FindPrograms(InterpreterNames())) {
    commands.push_back(
        {python, "-c", "import os; print(os.confstr('CS_GNU_LIBC_VERSION'))"});
  }
  for (std::vector<std::string>& command : commands) {
    auto ran = RunCommand(std::move(command), EnvironmentWithoutShim(), kTimeToAnswer);
    absl::string_view version = ran.ok() ? absl::string_view(ran->output) : "";
    if (absl::ConsumePrefix(&version, "glibc ")) {
      return std::string(absl::StripAsciiWhitespace(version));
    }
  }
  return "";
}

Check Glibc() {
  Check check{"glibc", Check::Status::kOk, VersionOfGlibc()};
  if (check.detail.empty()) {
    return {"glibc", Check::Status::kWarning,
            "not known: there is no `getconf` and no Python here that name one",
            "jobs of another libc (musl) run, but are not recorded"};
  }
  int major = 0;
  int minor = 0;
  if (sscanf(check.detail.c_str(), "%d.%d", &major, &minor) != 2 || major != 2 ||
      minor < kOldestGlibcMinor) {
    check.status = Check::Status::kError;
    check.advice =
        "use a system with glibc 2.28 or newer (Debian 10, Ubuntu 20.04, RHEL 8)";
  }
  return check;
}

Check Kernel() {
  utsname name = {};
  uname(&name);
  return {"kernel", Check::Status::kOk, absl::StrCat(name.sysname, " ", name.release)};
}

// What lull cannot do without.
Check Needed(const char* name, bool works, const char* found, const char* missing,
             const char* advice) {
  if (works) return {name, Check::Status::kOk, found};
  return {name, Check::Status::kError, missing, advice};
}

// Tried and not derived from a version: containers forbid single system calls.
Check Memfd() {
  UniqueFd fd(memfd_create("lull-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool works = fd && ftruncate(fd.get(), 4096) == 0 &&
                     fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
  return Needed(
      "memfd", works, "shared memory can be made and sealed",
      "memfd_create with seals does not work",
      "allow memfd_create in the container's seccomp profile; Linux 3.17 or newer");
}

Check WipeOnFork() {
  void* page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool works = page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0;
  if (page != MAP_FAILED) munmap(page, 4096);
  return Needed("fork", works, "memory can be wiped in fork children",
                "MADV_WIPEONFORK is not supported", "use Linux 4.14 or newer");
}

Check Pidfd() {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  return Needed("pidfd", static_cast<bool>(fd), "the relay can watch processes",
                "pidfd_open does not work",
                "use Linux 5.3 or newer, and allow pidfd_open in the seccomp profile");
}

Check Proc() {
  const bool works =
      access("/proc/self/maps", R_OK) == 0 && access("/proc/self/exe", F_OK) == 0;
  return Needed("/proc", works, "mounted", "/proc/self/maps cannot be read",
                "mount /proc");
}

Check Seccomp() {
  std::string status = Procfs().Read("self/status").text;
  absl::string_view mode = StatusField(status, "Seccomp");
  return {"seccomp", Check::Status::kOk,
          mode == "2" ? "a filter is on; the calls that lull needs are checked above"
                      : "no filter"};
}

Check Yama() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = -1;
  if (!(file >> scope)) {
    return {"yama", Check::Status::kOk, "not in this kernel"};
  }
  return {"yama", Check::Status::kOk,
          absl::StrCat("ptrace_scope is ", scope, "; `lull run` does not trace")};
}

}  // namespace

std::vector<Check> CheckSystem() {
  return {Kernel(), Glibc(), Memfd(), WipeOnFork(), Pidfd(), Proc(), Seccomp(), Yama()};
}

}  // namespace lull
