// What `lull attach` and liblull.so say to each other, once the library is in the
// process: two exported functions, called on a thread of the target that has been
// stopped where it holds no lock of libc's.
//
//   lull_attach(&AttachRequest, sizeof, &result)   until it no longer answers kMore
//   lull_detach(&DetachRequest, sizeof, &result)   the same
//
// Each call works for about kCallBudgetNs at most and returns kMore if that was not
// enough: the thread is never stopped for long, however large the process is. (What it
// waits for a processor meanwhile is no work. The first lull_detach stops recording at
// once; the first lull_attach starts nothing.)
#pragma once

#include <cstdint>

#include "preload/abi/version.h"

namespace lull::abi {

inline constexpr char kAttachFunction[] = "lull_attach";
inline constexpr char kDetachFunction[] = "lull_detach";

inline constexpr uint64_t kCallBudgetNs = 700'000;

struct AttachRequest {
  uint64_t magic;       // kSegmentMagic
  uint32_t version;     // kVersion
  uint32_t no_samples;  // 1: the relay looks at no thread, and needs no memory
  char socket[108];     // of the relay, as the target sees it; zero-terminated
  uint32_t reserved;
};

struct DetachRequest {
  uint64_t magic;
  uint32_t version;
  uint32_t force;  // 1: also while CUPTI is still tracing
};

enum class AttachResult : int64_t {
  kNotRun = 0,
  kDone = 1,
  kMore = 2,           // call again
  kPythonPending = 3,  // detach: done, but for Python's callbacks, which the main
                       // thread takes out as soon as it runs Python code
  kTracing = 4,        // detach: hold GPU tracing, and call again once a hook has
                       // switched it off
  kPreloaded = -1,     // the library came with the program: nothing to attach
  kBadRequest = -2,    // of another version of lull
  kRefused = -3,       // the relay did not answer, or not with yes
  kNotAttached = -4,   // detach only
};

static_assert(sizeof(AttachRequest) == 128 && sizeof(DetachRequest) == 16);

}  // namespace lull::abi
