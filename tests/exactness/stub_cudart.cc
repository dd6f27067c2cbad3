// A CUDA runtime that does nothing, as fast as possible: the emitter wants many
// events, not a device. tests/sim/ has the device.
#include <cstddef>

struct Dim3 {
  unsigned x, y, z;
};

extern "C" {
__attribute__((visibility("default"))) int cudaLaunchKernel(const void*, Dim3, Dim3,
                                                            void**, size_t, void*) {
  return 0;
}
__attribute__((visibility("default"))) int cudaStreamSynchronize(void*) { return 0; }
}
