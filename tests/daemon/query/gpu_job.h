// A made-up training process with GPU truth: a host thread that launches, waits,
// collects, allocates and syncs, a device that runs what was launched, and the records
// that CUPTI would give of it, in windows.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/daemon/collector/test_gpu.h"
#include "tests/daemon/collector/test_job.h"

namespace lull::test {

struct GpuEvent {
  uint64_t commit_ns = 0;  // when it is in its ring
  uint64_t process = 0;
  uint32_t ring = 0;  // 0: host thread, 1: CUPTI's, 1000: the relay's
  TestEvent event;
};

struct GpuJobOptions {
  uint64_t span_ns = 20'000'000'000;
  bool windows = true;               // else traced from the first second to the end
  uint64_t mean_pause_ns = 400'000;  // between two calls of the host
};

// Ordered by commit_ns.
std::vector<GpuEvent> MakeGpuJob(uint64_t process, const GpuJobOptions& options,
                                 std::mt19937_64& random);

}  // namespace lull::test
