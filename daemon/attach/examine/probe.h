// Whether the kernel lets us trace a process, found out by doing it.
#pragma once

#include <sys/types.h>

namespace lull::attach {

// PTRACE_SEIZE of the main thread by a child of ours that ends at once, by which the
// kernel lets go again. The target is not stopped and notices nothing. Returns 0 or an
// errno; EAGAIN when no child could be made.
int ProbePtrace(pid_t pid);

}  // namespace lull::attach
