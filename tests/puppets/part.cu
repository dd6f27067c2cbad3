// One library's share of the work; built once for each runtime. The exported name
// says which (PUPPET_PART).
#include "tests/puppets/cuda.h"
#include "tests/puppets/expected.h"

namespace puppets = lull::puppets;

KERNEL(part_kernel, {})

extern "C" __attribute__((visibility("default"))) void PUPPET_PART() {
  float* data = nullptr;
  CHECK(cudaMalloc(&data, 4096));
  for (int i = 0; i < puppets::kPartKernels; ++i)
    LAUNCH(part_kernel, 1, 32, nullptr, data);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(data));
  CHECK(cudaGetLastError());
}
