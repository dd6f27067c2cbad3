// PyTorch's engine of the backward pass: who calls it, and which threads are its own.
//
// libtorch_python.so calls both functions of libtorch_cpu.so by name, in
// PythonEngine::execute and PythonEngine::thread_init (torch/csrc/autograd/
// python_engine.cpp); their names, and so their parameters, are the same in 1.13
// to 2.15.
//
// An exception of the original passes through the wrapper of the first, as a matter of
// course. There is no landing pad for it: the personality routine, which every unwinder
// asks what there is to do in a frame, ends the call by itself and says "nothing".
#include <stdint.h>

#include "preload/autograd/backward.h"
#include "preload/hooks/torch_original.h"

namespace lull {

// std::vector<at::Tensor>: not trivial, so that the compiler returns it through memory,
// in whatever register the platform has for that. The original makes it where the
// caller wants it.
class EngineVariables {
 public:
  EngineVariables(const EngineVariables&) = delete;
  ~EngineVariables() {}

 private:
  [[maybe_unused]] uintptr_t words_[3];
};

namespace {

using Execute = EngineVariables(void* engine, const void* roots, const void* inputs,
                                bool keep_graph, bool create_graph, bool accumulate,
                                const void* outputs);
using ThreadInit = void(void* engine, int device, const void* queue, bool increment);

#define LULL_EXECUTE                                                     \
  "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2" \
  "_IN2at6TensorESaIS9_EEbbbS7_"
#define LULL_THREAD_INIT \
  "_ZN5torch8autograd6Engine11thread_initEiRKSt10shared_ptrINS0_10ReadyQueueEEb"

TorchOriginal g_execute, g_thread_init;

class CallOfEngine {
 public:
  explicit CallOfEngine(void* frame) { backward_begin(frame); }
  ~CallOfEngine() { backward_end(); }
  CallOfEngine(const CallOfEngine&) = delete;
  CallOfEngine& operator=(const CallOfEngine&) = delete;
};

}  // namespace

// Itanium C++ ABI, Level I. Called in the frame of engine_execute(), which is unwound
// by an exception or by the end of the thread; nothing of ours can throw there, so that
// it is within the original.
extern "C" __attribute__((used, visibility("hidden"))) int lull_engine_is_left(
    int, int actions, uint64_t, void*, void*) {
  constexpr int kCleanupPhase = 2, kContinueUnwind = 8;
  if ((actions & kCleanupPhase) != 0) backward_end();
  return kContinueUnwind;
}
// 0x1b: relative to where it stands, 4 bytes.
#define LULL_PERSONALITY asm volatile(".cfi_personality 0x1b, lull_engine_is_left")

#define LULL_ENGINE_EXPORT __attribute__((visibility("protected")))

LULL_ENGINE_EXPORT EngineVariables engine_execute(
    void* engine, const void* roots, const void* inputs, bool keep_graph,
    bool create_graph, bool accumulate, const void* outputs) asm(LULL_EXECUTE);
LULL_ENGINE_EXPORT void engine_thread_init(void* engine, int device, const void* queue,
                                           bool increment) asm(LULL_THREAD_INIT);

EngineVariables engine_execute(void* engine, const void* roots, const void* inputs,
                               bool keep_graph, bool create_graph, bool accumulate,
                               const void* outputs) {
  LULL_PERSONALITY;
  auto* original =
      torch_original<Execute>(LULL_EXECUTE, __builtin_return_address(0), g_execute);
  // Whoever calls us linked against it, so it is there.
  if (__builtin_expect(original == nullptr, 0)) __builtin_trap();
  CallOfEngine call(__builtin_frame_address(0));
  return original(engine, roots, inputs, keep_graph, create_graph, accumulate, outputs);
}

void engine_thread_init(void* engine, int device, const void* queue, bool increment) {
  auto* original = torch_original<ThreadInit>(
      LULL_THREAD_INIT, __builtin_return_address(0), g_thread_init);
  if (__builtin_expect(original == nullptr, 0)) __builtin_trap();
  t_autograd.is_engines = kEngines;
  original(engine, device, queue, increment);
}

}  // namespace lull
