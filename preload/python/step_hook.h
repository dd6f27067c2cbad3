// Training steps: a C function of ours among torch.optim's global post-step hooks
// (torch.optim.optimizer.register_optimizer_step_post_hook, PyTorch 2.0 and later).
//
// One step may call several optimizers (a GAN has two), so a step ends when the
// optimizer that has been stepped most often is stepped once more. Where the user named
// an NVTX range (steps/nvtx.cc), that decides, and nothing is installed.
#pragma once

#include <cstdint>

#include "preload/abi/arena.h"
#include "preload/python/api.h"

namespace lull {

// Installs the hook if PyTorch has been imported by now. With the GIL, in the main
// interpreter, any thread; an exception that is set is the caller's to keep. Cheap
// when there is nothing to do: one load once it is decided, else a look into
// sys.modules.
void step_hook_try_install(const PythonApi* api);

// For hooks that run without the GIL: has step_hook_try_install, and what stands for
// record_function's scopes (scopes/record_function.h), called soon, as a pending call,
// if one of them is undecided and was not tried for a while. Two loads when decided.
void step_hook_poll(uint64_t now_ns);

// The end of a step() of an optimizer whose hooks PyTorch does not have (before 2.0),
// as its scope tells of it; `stack`: where it was called, which stands for the
// optimizer. On any thread, under its Guard, as its own work. Where the hook is in or
// may come, nothing is done.
void step_scope_ended(abi::Ref stack);

// Takes the hook out again, unless a step is under way: then it stays. With the GIL.
void step_hook_remove(const PythonApi* api);

// abi::StepHookState, into the header of a new segment.
void step_hook_describe(char* segment);

// Pure: which calls of optimizers end a step.
class StepCounter {
 public:
  // True if this call of `optimizer` ends a step.
  bool stepped(const void* optimizer);

 private:
  static constexpr int kOptimizers = 16;
  struct Entry {
    const void* optimizer;
    uint64_t count;
  };
  Entry entries_[kOptimizers] = {};
  uint64_t highest_ = 0;
};

}  // namespace lull
