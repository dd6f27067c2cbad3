// FAKE_LOG: name of the log. FAKE_RUNTIME or FAKE_DRIVER: which library this is.
// FAKE_LAUNCH: another name for the launch of a runtime, FAKE_LAUNCH_NAME as text.
#include "tests/preload/cuda_fake.h"

#include <errno.h>
#include <string.h>

namespace {

FakeLog g_log;

template <typename... Arguments>
int seen(Arguments... arguments) {
  uint64_t values[] = {(uint64_t)arguments..., 0};
  ++g_log.calls;
  memcpy(g_log.arguments, values, sizeof values - sizeof values[0]);
  errno = g_log.errno_to_leave;
  if (g_log.throws) throw g_log.calls;
  return g_log.result;
}

}  // namespace

extern "C" {

FakeLog* FAKE_LOG() { return &g_log; }

#ifdef FAKE_RUNTIME

int cuStreamSynchronize(void* stream);

int FAKE_LAUNCH(const void* function, lull::Dim3 grid, lull::Dim3 block, void** args,
                size_t shared, void* stream) {
  return seen(function, grid.x * 10000 + grid.y * 100 + grid.z,
              block.x * 10000 + block.y * 100 + block.z, args, shared, stream);
}
__attribute__((alias(FAKE_LAUNCH_NAME))) int cudaLaunchKernel(const void*, lull::Dim3,
                                                              lull::Dim3, void**,
                                                              size_t, void*);
int cudaLaunchKernelExC(const lull::LaunchConfig* config, const void* function,
                        void** args) {
  return seen(config, function, args);
}
int cudaDeviceSynchronize() { return seen(0); }
int cudaStreamSynchronize(void* stream) {
  cuStreamSynchronize(stream);  // as the real runtime does
  return seen(stream);
}
int cudaMemcpy(void* dst, const void* src, size_t count, int kind) {
  return seen(dst, src, count, kind);
}
int cudaMemcpyAsync(void* dst, const void* src, size_t count, int kind, void* stream) {
  return seen(dst, src, count, kind, stream);
}
int cudaMemset(void* dst, int value, size_t count) { return seen(dst, value, count); }
int cudaMalloc(void** out, size_t size) {
  if (g_log.result == 0) *out = kDeviceMemory;
  return seen(out, size);
}
int cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  *out = kDeviceMemory;
  *pitch = 512;
  return seen(out, pitch, width, height);
}
int cudaHostAlloc(void** out, size_t size, unsigned flags) {
  *out = kPinnedMemory;
  return seen(out, size, flags);
}
int cudaFree(void* pointer) { return seen(pointer); }

int cudaPointerGetAttributes(int* type, const void* pointer) {
  if (pointer == kUnaskableMemory) return g_log.last_error = 1;
  *type = pointer == kDeviceMemory ? 2 : pointer == kPinnedMemory ? 1 : 0;
  return 0;
}
int cudaPeekAtLastError() { return g_log.last_error; }
int cudaGetLastError() {
  int error = g_log.last_error;
  g_log.last_error = 0;
  return error;
}

#else

int cuStreamSynchronize(void* stream) { return seen(stream); }
int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, unsigned shared, void* stream, void** args, void** extra) {
  return seen(function, shared, stream, args, extra);
}
int cuMemAlloc_v2(unsigned long long* out, size_t size) {
  *out = reinterpret_cast<unsigned long long>(kDeviceMemory);
  return seen(out, size);
}
int cuMemcpyHtoDAsync_v2(unsigned long long dst, const void* src, size_t count,
                         void* stream) {
  return seen(dst, src, count, stream);
}
int cuPointerGetAttribute(void* data, int, unsigned long long pointer) {
  if (pointer == reinterpret_cast<uint64_t>(kPageableMemory)) return 1;
  int type = pointer == reinterpret_cast<uint64_t>(kPinnedMemory) ? 1 : 2;
  memcpy(data, &type, sizeof type);
  return 0;
}

// A function of the driver that it does not export under any name.
static int internal_launch() { return 0; }

int cuGetProcAddress_v2(const char* symbol, void** out, int, unsigned long flags,
                        int* status) {
  *out = nullptr;
  if (strcmp(symbol, "cuMemAlloc") == 0) *out = reinterpret_cast<void*>(&cuMemAlloc_v2);
  if (strcmp(symbol, "cuLaunchKernel") == 0) {
    *out = flags == 2 ? reinterpret_cast<void*>(&internal_launch)
                      : reinterpret_cast<void*>(&cuLaunchKernel);
  }
  if (status != nullptr) *status = *out == nullptr;
  return *out == nullptr ? 500 : 0;
}
#endif
}
