// The seccomp filters of a thread, as it has installed or inherited them.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

#include "absl/status/statusor.h"
#include "daemon/attach/inject/inject.h"

namespace lull::inject {

using SeccompProgram = std::vector<sock_filter>;

// Whether the kernel would let us: CAP_SYS_ADMIN, and no filter on ourselves.
bool MayReadFilters();

// Stops the thread for some 100 us, which `stops` is told; what it waits for does not
// notice (Arch::GivenBack). Empty: it has none. PERMISSION_DENIED, or UNIMPLEMENTED by
// this kernel (CONFIG_CHECKPOINT_RESTORE) or on this machine. UNAVAILABLE: it did not
// stop, or is traced already. NOT_FOUND: it has ended.
absl::StatusOr<std::vector<SeccompProgram>> ReadFilters(pid_t pid, pid_t tid,
                                                        Stops* stops);

}  // namespace lull::inject
