// Deep native stacks above cudaStreamSynchronize, for sync_hook.py: the hooked call
// against the runtime's own, from the same depth, in the same loop.
#include <dlfcn.h>

#include <cstdint>
#include <ctime>

extern "C" int cudaStreamSynchronize(void*);

namespace {

using Synchronize = int (*)(void*);

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + t.tv_nsec;
}

volatile int g_sink;

// A frame of its own for every level: neither inlined nor turned into a loop.
__attribute__((noinline)) uint64_t descend(int frames, Synchronize synchronize,
                                           int calls) {
  if (frames > 0) {
    uint64_t result = descend(frames - 1, synchronize, calls);
    g_sink = frames;
    return result;
  }
  uint64_t start = now_ns();
  for (int i = 0; i < calls; ++i) g_sink = synchronize(nullptr);
  return now_ns() - start;
}

}  // namespace

// Nanoseconds of `calls` calls made below `frames` frames.
extern "C" uint64_t sync_frames(int frames, int calls, int hooked) {
  static void* runtime = dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD);
  static auto direct = reinterpret_cast<Synchronize>(
      dlvsym(runtime, "cudaStreamSynchronize", "libcudart.so.12"));
  return descend(frames, hooked != 0 ? cudaStreamSynchronize : direct, calls);
}
