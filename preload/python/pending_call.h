// Has the interpreter call a function of ours soon, on its main thread, with the GIL.
//
// Py_AddPendingCall may be called without the GIL, but not whenever one likes:
//
//  * While the interpreter ends on its main thread, any other thread may find the
//    queue's lock freed under its hands. The main thread itself cannot, and neither can
//    a thread that holds the GIL, without which nothing ends.
//  * CPython 3.8 takes no more of them once it has begun to end, before the program's
//    atexit functions run, and says so by raising: without the GIL that is a crash,
//    and with it a message on stderr.
#pragma once

#include "preload/python/api.h"

namespace lull {

// True: `function` will be called with nullptr, and returns 0. False: this is not the
// thread or the moment to ask, or the queue is full; ask again some other time. Needs
// no GIL, raises nothing, waits for nothing but the queue's lock.
bool python_call_soon(const PythonApi* api, int (*function)(void*));

}  // namespace lull
