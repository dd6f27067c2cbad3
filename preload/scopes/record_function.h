// The scopes of torch.profiler.record_function, and what else has the scope USER_SCOPE.
// DataLoader wraps each __next__ in one, Optimizer each step.
//
// First by a global callback of at::RecordFunction (ATen/record_function.h). While
// there is one, PyTorch copies its list and builds its tables anew for each node that
// its backward engine works on, which no clock of ours sees
// (docs/decisions/cheap_host_mode.md). So once the wrapper of at::getStepCallbacks
// (hooks/torch_scopes.cc) has seen our callback in what a scope is given, and thereby
// how that is laid out (step_callbacks.h), the callback is taken out, and the wrapper
// puts our functions there. Where the wrapper is never asked (a PyTorch that calls its
// own functions directly) the callback stays. Where a scope's list has no room, that
// scope is missed and counted, and the callback comes back.
//
// Operators have another scope (FUNCTION), which nobody asks for here: they cost what
// they cost without us.
//
// Verified by compiling against the headers of 1.13.1, 2.1.2, 2.4.1, 2.6.0, 2.8.0,
// 2.12.1 and 2.15.0, and by the symbols of these: what is called, the callback's 40
// bytes, and that both are the same in all. Of RecordFunction itself nothing is read:
// its offsets change with the ABI of std::string. Another version gets no callback.
#pragma once

#include <stdint.h>

#include "preload/python/api.h"

namespace lull {

// Adds the callback if PyTorch has been imported by now and this process records. With
// the GIL, in the main interpreter, any thread: PyTorch takes a mutex, under which it
// runs nothing of Python's. An exception that is set is the caller's to keep. One load
// once it is decided.
void record_function_try_install(const PythonApi* api);

// True while there is nothing to be done: it is in as it should be, or cannot be.
bool record_function_is_decided();

// Takes it out again. With the GIL. A thread may be in it: the library stays mapped.
void record_function_remove();

// callbacks: an at::StepCallbacks that PyTorch has just made for the calling thread,
// and that `caller` has not seen yet. Any thread, no GIL, no lock; of PyTorch's, two
// functions are called that read what the thread has.
void record_function_looks_at(void* callbacks, uint8_t scope, const void* caller);

// abi::ScopeHookState, into the header of a new segment.
void record_function_describe(char* segment);

// Pure: "2.9.1+cu128" is a version whose ABI was verified.
bool record_function_is_known(const char* torch_version);

}  // namespace lull
