// What the simulated driver knows of the calling thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sim/engine/objects.h"

namespace lull::sim {

struct ThreadState {
  uint32_t tid = 0;                // kernel thread id
  std::vector<Context*> contexts;  // current one last
  CaptureMode capture_mode = CaptureMode::kGlobal;
  int64_t next_kernel_ns = -1;              // control API: duration of the next launch
  int64_t next_kernel_work_ns = -1;         // the same, where its name has no entry
  const Exchange* next_exchange = nullptr;  // of the next launch
  int depth = 0;                            // API calls on the stack
  uint64_t correlation = 0;                 // of the outermost of them
  uint64_t inner = 0;                       // of the innermost
  int64_t blocked_ns = 0;                   // total time spent waiting for the device

  Context* context() const { return contexts.empty() ? nullptr : contexts.back(); }
};

ThreadState& this_thread();

}  // namespace lull::sim
