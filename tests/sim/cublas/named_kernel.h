// How the stand-ins for cuBLAS and cuDNN reach the simulated device: as the real
// libraries do, which carry a runtime of their own. libcuda.so.1 is opened at
// first use, its functions come from cuGetProcAddress, and kernels are launched by
// cuLaunchKernel: no runtime function is called that a tool could intercept.
#pragma once

#include <cstdint>

namespace lull::sim {

// What a kernel has to do, which decides how long it takes.
struct Work {
  double flops = 0;
  double bytes = 0;     // read and written
  bool tensor = false;  // on tensor cores
  double blocks = 1;    // of the grid
};

// Launches the kernel `name` on `stream` in the current context. False when the
// driver refuses, or is not the simulated one.
bool launch_named(const char* name, void* stream, const Work& work);

}  // namespace lull::sim
