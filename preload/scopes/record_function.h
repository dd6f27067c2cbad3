// The scopes of torch.profiler.record_function, and what else has the scope USER_SCOPE:
// a global callback of at::RecordFunction (ATen/record_function.h). DataLoader wraps
// each __next__ in one, Optimizer each step.
//
// Operators have another scope (FUNCTION), which nobody asks for here: they cost what
// they cost without us.
//
// Verified by compiling against the headers of 1.13.1, 2.1.2, 2.4.1, 2.6.0, 2.8.0,
// 2.12.1 and 2.15.0, and by the symbols of these: what is called, the callback's 40
// bytes, and that both are the same in all. Of RecordFunction itself nothing is read:
// its offsets change with the ABI of std::string. Another version gets no callback.
#pragma once

#include "preload/python/api.h"

namespace lull {

// Adds the callback if PyTorch has been imported by now and this process records. With
// the GIL, in the main interpreter, any thread: PyTorch takes a mutex, under which it
// runs nothing of Python's. An exception that is set is the caller's to keep. One load
// once it is decided.
void record_function_try_install(const PythonApi* api);

// True while there is nothing to be tried: it is in, or cannot be.
bool record_function_is_decided();

// Takes it out again. With the GIL. A thread may be in it: the library stays mapped.
void record_function_remove();

// abi::ScopeHookState, into the header of a new segment.
void record_function_describe(char* segment);

// Pure: "2.9.1+cu128" is a version whose ABI was verified.
bool record_function_is_known(const char* torch_version);

}  // namespace lull
