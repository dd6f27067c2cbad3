// CPython 3.13 and later describe themselves: _PyRuntime begins with a table of
// offsets, _Py_DebugOffsets. The table's own shape changes with each minor
// version (never within one), so each known shape has a struct here. A version
// that is not known yields no Python stacks rather than wrong ones.
#pragma once

#include "preload/stacks/layouts/layout.h"

namespace lull {

// runtime: address of _PyRuntime. False when the cookie is wrong, the minor
// version is not one of those below, the build is free-threaded (its frames may
// run a thread-local copy of the bytecode, so that an instruction pointer says
// nothing about the line) or an offset is out of all reason.
bool layout_from_debug_offsets(const void* runtime, CPythonLayout* layout);

}  // namespace lull
