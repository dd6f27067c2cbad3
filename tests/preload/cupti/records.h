// Activity records as tests write them: plausible in every field.
#pragma once

#include "preload/cupti/types.h"

namespace lull::cupti {

inline constexpr char kKernelName[] = "_ZN2at6native18elementwise_kernelE";

inline Kernel kernel_record(uint64_t start, uint64_t end, uint32_t correlation = 1) {
  Kernel record = {};
  record.kind = Kind::kConcurrentKernel;
  record.registers_per_thread = 40;
  record.start = start;
  record.end = end;
  record.device = 0;
  record.context = 1;
  record.stream = 7;
  record.grid[0] = 128, record.grid[1] = 2, record.grid[2] = 1;
  record.block[0] = 256, record.block[1] = record.block[2] = 1;
  record.static_shared = 1024;
  record.dynamic_shared = 2048;
  record.correlation = correlation;
  record.name = kKernelName;
  return record;
}

inline ApiCall call_record(Kind kind, uint32_t callback, uint64_t start, uint64_t end,
                           uint32_t correlation = 1) {
  ApiCall record = {};
  record.kind = kind;
  record.callback = callback;
  record.start = start;
  record.end = end;
  record.thread = 4321;
  record.correlation = correlation;
  return record;
}
inline constexpr uint32_t kCudaLaunchKernel = 211;
inline constexpr uint32_t kCudaGetDevice = 17;
inline constexpr uint32_t kCuLaunchKernel = 307;

}  // namespace lull::cupti
