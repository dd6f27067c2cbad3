// What a process's seccomp filters would do about the system calls that lull makes in
// it.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/procfs/procfs.h"

namespace lull::attach {

struct Process;

using SeccompProgram = std::vector<sock_filter>;

// The filters of one thread, read by tracing it for an instant.
using ReadFilters =
    std::function<absl::StatusOr<std::vector<SeccompProgram>>(pid_t pid, pid_t tid)>;

enum class Sandbox {
  kNone,       // no filters
  kInherited,  // as many as the first process of its container: the runtime's, which
               // refuse and do not kill
  kOwn,        // more than that, and nobody has read them
  kHarmless,   // they were read, and kill for nothing that lull does
  kKills,
};

struct Filters {
  Sandbox sandbox = Sandbox::kNone;
  std::string call;  // kKills: the first that they kill for
};

// How many filters each thread has that has any; -1: a kernel before 5.9 does not say.
std::map<pid_t, int> CountFilters(pid_t pid, const Procfs& procfs);

// `read` may be empty: then they are judged by their number alone.
Filters JudgeFilters(const Process& process, const Procfs& procfs,
                     const ReadFilters& read);

// Whether a filter may end the thread or the process, or send it SIGSYS, for a system
// call of this machine's. Arguments may be anything: what they decide is taken both
// ways. True for a program that makes no sense.
bool MayKill(std::span<const sock_filter> program, long call);

}  // namespace lull::attach
