// What the rest of the shim asks of CPython. All symbols come from dlsym at run
// time; nothing links libpython.
#pragma once

#include "preload/abi/segment.h"

namespace lull {

// Constructor time: is there an interpreter in this process (exe or a library
// that is mapped by now)? Looks for Py_IsInitialized.
bool python_find();

// Called on cold occasions by hooks that Python itself goes through (read, poll,
// sem_wait...) and by CUDA and tensor hooks, until it answers true. Once the
// interpreter is initialised, schedules the installation of the GC callback as a
// pending call. Needs no GIL. Hooks of waits call it before the original, never
// after: a sem_wait that just returned may have been for the very lock that
// Py_AddPendingCall takes.
bool python_poll_install();

// False with a detach: what we have put into Python takes itself out at the next
// garbage collection. True again with the next attachment.
void python_want(bool wanted);
bool python_callbacks_are_out();

// True on the thread that runs the interpreter's main loop (the process's main thread).
bool python_is_main_thread();

// This thread has the GIL, or it cannot be told that it has not.
bool python_holds_gil();

// True if any frame of this thread's Python stack lies in a file whose path ends
// with `suffix` ("torch/utils/data/_utils/worker.py"). Cold.
bool python_stack_contains(const char* suffix);

}  // namespace lull
