// Who is looking: what lull itself is and may do, as far as attaching depends on it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "daemon/procfs/procfs.h"

namespace lull::attach {

struct Viewpoint {
  pid_t pid = 0;
  uint32_t uid = 0;  // the real ones: these are what ptrace compares
  uint32_t gid = 0;
  std::string user;
  uint64_t capabilities = 0;  // effective
  uint64_t permitted_capabilities = 0;
  int yama_scope = -1;  // kernel.yama.ptrace_scope; -1 = a kernel without yama
  int kernel_major = 0;
  int kernel_minor = 0;
  std::string kernel;  // "6.1.0-13-amd64"

  bool may_trace_anybody() const;  // CAP_SYS_PTRACE
};

Viewpoint ReadViewpoint(const Procfs& procfs);

}  // namespace lull::attach
