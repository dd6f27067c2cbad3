// Whether the kernel lets us trace a process, found out by doing it.
#pragma once

#include <sys/types.h>

namespace lull::attach {

// A child of ours does PTRACE_SEIZE on the main thread and ends at once, so that the
// kernel lets go of it again. The target is not stopped and notices nothing. Returns 0
// or an errno; EAGAIN when no child could be made.
int ProbePtrace(pid_t pid);

}  // namespace lull::attach
