// Kernels, streams and a device of a made-up job; see test_job.h.
#pragma once

#include <cstdint>

#include "ingest.pb.h"

namespace lull::test {

inline constexpr uint32_t kApiCudaLaunch = 4096 + 211;  // named by AddGpu

// Refs that AddGpu defines.
inline constexpr uint32_t kKernelRefs =
    6;  // refs 1..6; 5 and 6 are one name, two shapes
inline constexpr uint32_t kStreamRefs = 2;  // refs 1 and 2, both of device 0
const char* KernelName(uint32_t ref);
void AddGpu(lull::v1::Batch& batch, uint64_t process_key);

}  // namespace lull::test
