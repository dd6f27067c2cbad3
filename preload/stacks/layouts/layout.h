// Where CPython keeps what a stack walk reads: one table of byte offsets per
// minor version. Release builds of CPython never move these fields within a
// minor version. Sources of the numbers: offsetof() over the headers of the named
// release (3.8 to 3.12), or the table that CPython publishes about itself (3.13+,
// debug_offsets.h).
#pragma once

#include "preload/abi/python_layout.h"

namespace lull {

using CPythonLayout = abi::PythonLayout;
using abi::InstructionForm;
using abi::kFirstForeignOwner;

}  // namespace lull
