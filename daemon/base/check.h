// Checks our own invariants. Once one is broken, nothing more may be reported: the
// numbers would be wrong. LULL_CHECK says which and where, in the log of the process,
// and ends it: the collector, a relay's worker (its keeper starts the next), a command.
//
// Never in what runs inside a job (preload/), and never for what comes from the wire,
// from a ring or from the disk, which may be anything: that is validated, counted, left
// out. So each use holds whatever comes in.
//
//   LULL_CHECK(kernel_ns <= busy_ns, "kernels ran while the device was idle");
#pragma once

#include "absl/base/optimization.h"

namespace lull {

[[noreturn]] void EndByCheck(const char* file, int line, const char* condition,
                             const char* what);

}  // namespace lull

#define LULL_CHECK(condition, what) \
  (ABSL_PREDICT_TRUE(condition)     \
       ? static_cast<void>(0)       \
       : ::lull::EndByCheck(__FILE__, __LINE__, #condition, what))
