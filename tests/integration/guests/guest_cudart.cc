// A libcudart whose cudaDeviceSynchronize() throws and whose cudaStreamSynchronize()
// calls back, which no real one does: hooks must let exceptions and jumps pass.
#include <stdexcept>

extern "C" {

int cudaDeviceSynchronize() { throw std::runtime_error("no device"); }
int cudaFree(void*) { return 0; }
int cudaMemcpy(void*, const void*, unsigned long, int) { return 0; }

// The stream is a function to be called, or null.
int cudaStreamSynchronize(void* stream) {
  if (stream != nullptr) reinterpret_cast<void (*)()>(stream)();
  return 0;
}
}
