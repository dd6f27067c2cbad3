// Whether a process can be attached to, and if not, why and what to do. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/attach/examine/process.h"
#include "daemon/attach/examine/seccomp.h"
#include "daemon/attach/examine/viewpoint.h"

namespace lull::attach {

// Hard obstacles, by id (stable: scripts may look for them):
//   not_found dying kernel_thread traced stopped            the process as it is now
//   other_user other_group not_dumpable capabilities yama ptrace_denied     permission
//   other_bitness other_machine musl static_binary old_glibc strict_seccomp   the shim
//   seccomp_kills own_seccomp_filter
//   shadow_stack kernel_too_old no_foothold
//   already_recorded already_attached                        lull is in it already
// Notes, which do not keep lull from attaching:
//   other_pid_namespace other_mount_namespace other_user_namespace seccomp_filter
//   attached_before python_unsupported
struct Obstacle {
  std::string id;
  std::string brief;   // a few words, for a column: "user alice's"
  std::string what;    // one sentence: what is the case
  std::string advice;  // one sentence: what to do; "" when there is nothing to do
  bool may_be_forced = false;  // only a risk, which whoever attaches may take
};

// What is known beyond /proc.
struct Circumstances {
  bool is_descendant = false;  // the process is one of ours or below
  absl::Status foothold;       // FindFoothold(), when it has another view of the files
  // An errno of really tracing it for a moment; not set = not tried.
  std::optional<int> probe;
  Filters filters;
  bool filters_readable = false;  // by us, when we attach
};

struct Verdict {
  std::vector<Obstacle> obstacles;  // empty: it can be attached
  std::vector<Obstacle> notes;
};

Verdict Judge(const Process& process, const Viewpoint& view,
              const Circumstances& circumstances);

}  // namespace lull::attach
