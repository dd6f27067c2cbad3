// How full a kernel can fill the multiprocessors, from its launch shape and the
// device's limits. Estimates, as other tools give them: what really ran side by side is
// not known.
#pragma once

#include <cstdint>

namespace lull::aggregate {

struct LaunchShape {
  uint64_t blocks = 0;             // in the grid
  uint32_t threads_per_block = 0;  // 0: unknown
  uint32_t registers_per_thread = 0;
  uint32_t shared_bytes = 0;  // per block, static and dynamic
};

struct DeviceLimits {
  uint32_t multiprocessors = 0;
  uint32_t max_threads = 0;  // these per multiprocessor
  uint32_t max_blocks = 0;
  uint32_t max_registers = 0;
  uint32_t max_shared_bytes = 0;
  uint32_t warp_size = 32;
  uint32_t compute_capability = 0;  // 10 * major + minor
};

// Blocks that one multiprocessor can hold at once: the least of what its slots for
// blocks and warps, its registers and its shared memory allow. 0: unknown, or the
// kernel does not fit.
//
// From the CUDA C++ Programming Guide ("Hardware Multithreading", "Compute
// Capabilities") and the Occupancy Calculator: registers are given out to a warp in
// units of 256, warps to four schedulers evenly; shared memory in units of 128 bytes
// (256 before 8.0), and from 8.0 on the system keeps 1 KiB a block.
uint32_t MaxActiveBlocks(const LaunchShape& shape, const DeviceLimits& device);

// Blocks of the grid per multiprocessor; 0: unknown.
double BlocksPerMultiprocessor(const LaunchShape& shape, const DeviceLimits& device);

// "Est. achieved occupancy": threads that are resident, in percent of the most. A grid
// smaller than the device leaves multiprocessors empty. 0: unknown.
double OccupancyPercent(const LaunchShape& shape, const DeviceLimits& device);

}  // namespace lull::aggregate
