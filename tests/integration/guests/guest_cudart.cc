// A libcudart whose cudaDeviceSynchronize() throws, which no real one does: the
// hook must let the exception pass.
#include <stdexcept>

extern "C" {

int cudaDeviceSynchronize() { throw std::runtime_error("no device"); }
int cudaFree(void*) { return 0; }
}
