#include "daemon/attach/examine/verdict.h"

#include <errno.h>
#include <string.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/attach/examine/glibc_version.h"
#include "daemon/attach/examine/permission.h"
#include "daemon/attach/examine/python_versions.h"

namespace lull::attach {
namespace {

// pidfd_open, by which the relay watches its targets.
constexpr int kOldestKernelMajor = 5;
constexpr int kOldestKernelMinor = 3;

using List = std::vector<Obstacle>;

void JudgeState(const Process& process, List* list) {
  if (process.tracer != 0 || process.state == 't') {
    std::string who = process.tracer == 0 ? "a tracer that cannot be seen from here"
                                          : absl::StrCat(process.tracer_name, " (PID ",
                                                         process.tracer, ")");
    list->push_back(
        {"traced",
         absl::StrCat("traced by ",
                      process.tracer_name.empty() ? "another" : process.tracer_name),
         absl::StrCat("It is being traced by ", who,
                      ", and a process can have one tracer only."),
         "End the debugger or tracer, then try again."});
  }
  if (process.state == 'T') {
    list->push_back({"stopped", "stopped",
                     "It is stopped (by Ctrl-Z or SIGSTOP), so none of its threads "
                     "comes by the place where the shim can be loaded.",
                     absl::StrCat("Let it go on with `fg` or `kill -CONT ", process.pid,
                                  "`, then try again.")});
  }
}

void JudgeProgram(const Process& process, List* list) {
  const Program& program = process.program;
  if (!process.readable || !program.known) return;
  if (program.bits != OwnBits()) {
    list->push_back(
        {"other_bitness", absl::StrCat(program.bits, "-bit"),
         absl::StrCat("It is a ", program.bits, "-bit program, and the shim has ",
                      OwnBits(), " bits."),
         absl::StrCat("Run the job as a ", OwnBits(), "-bit program.")});
    return;
  }
  if (program.machine != OwnMachine()) {
    list->push_back(
        {"other_machine", MachineName(program.machine),
         absl::StrCat("It is a program for ", MachineName(program.machine),
                      ", and this lull is for ", MachineName(OwnMachine()), "."),
         absl::StrCat("Use a lull that was built for ", MachineName(program.machine),
                      ".")});
    return;
  }
  bool is_musl = process.files.musl || absl::StrContains(program.loader, "/ld-musl-");
  if (process.files.glibc.empty() && is_musl) {
    list->push_back(
        {"musl", "musl libc",
         "It uses the musl C library (as in Alpine images), and the shim "
         "needs glibc.",
         "Run the job in an image with glibc 2.28 or newer (Debian, Ubuntu, "
         "RHEL); PyTorch's own wheels need one as well."});
  } else if (process.files.glibc.empty() && program.loader.empty()) {
    list->push_back({"static_binary", "static",
                     "It is linked statically, so there is no loader in it that could "
                     "load the shim.",
                     "Link the program dynamically against glibc."});
  } else if (!IsGlibcNewEnough(process.glibc_version)) {
    list->push_back(
        {"old_glibc", absl::StrCat("glibc ", process.glibc_version),
         absl::StrCat("Its C library is glibc ", process.glibc_version,
                      ", and the shim needs 2.28 or newer."),
         "Run the job in a newer image (Debian 10, Ubuntu 20.04, RHEL 8)."});
  }
}

void JudgeKernel(const Process& process, const Viewpoint& view, List* list) {
  if (process.seccomp == SeccompMode::kStrict) {
    list->push_back({"strict_seccomp", "strict seccomp",
                     "It is in seccomp's strict mode, in which it may do nothing but "
                     "read and write; loading a library would kill it.",
                     "Attach to a process without that sandbox."});
  }
  if (process.shadow_stack) {
    list->push_back({"shadow_stack", "shadow stack",
                     "The processor guards its return addresses (a shadow stack is "
                     "on), which forbids to call a function in it from outside.",
                     "Start the job with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off, or "
                     "under `lull run --dormant`, which does not inject."});
  }
  bool known = view.kernel_major != 0;
  if (known && (view.kernel_major < kOldestKernelMajor ||
                (view.kernel_major == kOldestKernelMajor &&
                 view.kernel_minor < kOldestKernelMinor))) {
    list->push_back({"kernel_too_old", "old kernel",
                     absl::StrCat("The kernel is Linux ", view.kernel,
                                  ", and lull needs 5.3 or newer."),
                     "Use a host with a newer kernel."});
  }
}

// What the shim itself makes of its surroundings (preload/entry/sandbox.h).
bool HasFilterOfItsOwn(const Circumstances& circumstances) {
  return circumstances.filters.sandbox != Sandbox::kNone &&
         circumstances.filters.sandbox != Sandbox::kInherited;
}

void JudgeShim(const Process& process, const Circumstances& circumstances,
               Verdict* verdict) {
  if (process.files.shim.empty()) return;
  if (process.preloaded && HasFilterOfItsOwn(circumstances)) {
    verdict->obstacles.push_back(
        {"already_recorded", "under lull run",
         "It was started under `lull run`, and has a seccomp filter of its own, which "
         "might kill it for what lull does: so nothing is recorded below that filter.",
         "Start it without the filter."});
    return;
  }
  if (process.preloaded) {
    verdict->obstacles.push_back(
        {"already_recorded", "under lull run",
         process.files.shim_records
             ? "It was started under `lull run`, which records it already."
             : "It was started under `lull run`, and the shim is in it already.",
         "See `lull jobs` and `lull report`; a dormant job is woken with `lull arm "
         "JOB`."});
  } else if (process.files.shim_records) {
    verdict->obstacles.push_back({"already_attached", "attached",
                                  "A `lull attach` watches it at this moment.",
                                  "See `lull jobs`, or end the other `lull attach` "
                                  "first."});
  } else {
    verdict->notes.push_back({"attached_before", "attached before",
                              "The shim is mapped from an earlier attach, and asleep.",
                              ""});
  }
}

void JudgeFoothold(const Process& process, const Circumstances& circumstances,
                   Verdict* verdict) {
  if (!process.readable) return;
  if (!circumstances.foothold.ok()) {
    verdict->obstacles.push_back(
        {"no_foothold", "no writable folder",
         absl::StrCat("It sees other files than lull, and there is no place for the "
                      "shim that both could reach: ",
                      std::string(circumstances.foothold.message()), "."),
         "Give its container a writable tmpfs without noexec, such as `--tmpfs "
         "/tmp:exec`, or start the job under `lull run` inside of the container."});
  } else if (!process.same_root) {
    verdict->notes.push_back(
        {"other_mount_namespace", "other files",
         "It sees other files than lull (a container or chroot); the shim is copied "
         "to a folder of its own in there for as long as lull is attached.",
         ""});
  }
}

// "3.7", or "" for one whose frames can be read.
std::string UnsupportedPython(const std::string& version) {
  int major = 0;
  int minor = 0;
  if (sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return "";
  bool fine = major == 3 && minor >= kOldestPythonMinor &&
              minor <= kNewestPythonMinor && !absl::EndsWith(version, "t");
  return fine ? "" : version;
}

void JudgeSandbox(const Process& process, const Circumstances& circumstances,
                  Verdict* verdict) {
  switch (circumstances.filters.sandbox) {
    case Sandbox::kNone:
      return;
    case Sandbox::kInherited:
    case Sandbox::kHarmless:
      verdict->notes.push_back({"seccomp_filter", "seccomp filter",
                                "A seccomp filter is on it, as in most containers.",
                                "If attaching fails, allow memfd_create, socket and "
                                "connect in the filter."});
      return;
    case Sandbox::kKills:
      verdict->obstacles.push_back(
          {"seccomp_kills", "seccomp kills",
           absl::StrCat("Its seccomp filter kills it for ", circumstances.filters.call,
                        ", which lull has to call in it."),
           "Allow that call in the filter, or let it answer with an error instead; or "
           "attach to a process without that sandbox."});
      return;
    case Sandbox::kOwn:
      break;
  }
  if (circumstances.filters_readable) {
    verdict->notes.push_back({"seccomp_filter", "seccomp filter",
                              "It has a seccomp filter of its own, which `lull attach` "
                              "reads first: where it kills for a call of lull's, lull "
                              "stays out.",
                              ""});
    return;
  }
  verdict->obstacles.push_back(
      {"own_seccomp_filter", "own seccomp filter",
       "It has a seccomp filter of its own, which may kill it for what lull has to "
       "call "
       "in it (memfd_create, socket, connect and others) and which lull may not read.",
       absl::StrCat("Run lull as root, which may read it; `lull attach --force ",
                    process.pid, "` goes on, and risks the process's life."),
       true});
}

void AddNotes(const Process& process, List* notes) {
  if (process.pid_namespace == Namespace::kOther || process.in_inner_pid_namespace) {
    notes->push_back({"other_pid_namespace", "other PIDs",
                      absl::StrCat("It lives in a PID namespace of its own (a "
                                   "container); ",
                                   process.pid, " is its PID out here."),
                      ""});
  }
  if (process.user_namespace == Namespace::kOther ||
      process.user_namespace == Namespace::kBelowOurs) {
    notes->push_back({"other_user_namespace", "other users",
                      "It lives in a user namespace of its own (a rootless "
                      "container).",
                      ""});
  }
  std::string version = UnsupportedPython(process.files.python_version);
  if (!version.empty()) {
    notes->push_back({"python_unsupported", absl::StrCat("Python ", version),
                      absl::StrCat("Its Python ", version,
                                   " is none whose stacks lull can read; native stacks "
                                   "are there."),
                      absl::StrCat("Use ", kReadablePythons, ".")});
  }
}

}  // namespace

Verdict Judge(const Process& process, const Viewpoint& view,
              const Circumstances& circumstances) {
  Verdict verdict;
  if (!process.exists) {
    verdict.obstacles.push_back(
        {"not_found", "gone",
         absl::StrCat("There is no process ", process.pid, " that lull can see."),
         "Look for it with `lull ps`; a process of another user may be hidden "
         "(/proc mounted with hidepid), and PIDs differ inside of containers."});
    return verdict;
  }
  if (process.state == 'Z' || process.state == 'X' || process.state == 'x') {
    verdict.obstacles.push_back(
        {"dying", "ended",
         "It has ended already and only waits for its parent to take note.",
         "Start the job again; nothing can be seen of it any more."});
    return verdict;
  }
  if (process.kernel_thread) {
    verdict.obstacles.push_back({"kernel_thread", "kernel thread",
                                 "It is a thread of the kernel, not a program.", ""});
    return verdict;
  }
  JudgeState(process, &verdict.obstacles);
  JudgePermission(process, view, circumstances, &verdict.obstacles);
  JudgeProgram(process, &verdict.obstacles);
  JudgeKernel(process, view, &verdict.obstacles);
  JudgeShim(process, circumstances, &verdict);
  JudgeFoothold(process, circumstances, &verdict);
  AddNotes(process, &verdict.notes);
  JudgeSandbox(process, circumstances, &verdict);
  return verdict;
}

}  // namespace lull::attach
