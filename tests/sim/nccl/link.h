// How the stand-in for NCCL reaches the simulated device: as the real library does,
// which carries a runtime of its own. libcuda.so.1 is opened at first use, its
// functions come from cuGetProcAddress, and kernels are launched by cuLaunchKernelEx.
#pragma once

#include <cstdint>

#include "tests/sim/engine/exchange.h"

namespace lull::sim::nccl {

struct Driver {
  int (*init)(unsigned);
  int (*retain_primary)(void**, int);
  int (*set_context)(void*);
  int (*current_device)(int*);
  int (*library_load)(void**, const void*, void*, void*, unsigned, void*, void*,
                      unsigned);
  int (*library_kernel)(void**, void*, const char*);
  int (*launch)(const void* config, void* function, void** arguments, void** extra);
  void (*next_exchange)(const Exchange*);
  void (*exchanged)(uint64_t kernel, const Exchanged*);
  void (*end_exchanges)(const void* member);
  int64_t (*timeout_ns)();
  void* library = nullptr;  // holds every kernel that is asked for

  // CUresult. On a stream of the program's.
  int launch_exchange(const Exchange* exchange, void* kernel, void* stream) const;
};

// Null if there is no driver that works, or it is not the simulated one.
const Driver* driver();

}  // namespace lull::sim::nccl
