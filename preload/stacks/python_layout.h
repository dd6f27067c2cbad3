// Which layout the interpreter of this process has.
#pragma once

#include "preload/abi/handshake.h"
#include "preload/python/api.h"
#include "preload/stacks/layouts/layout.h"

namespace lull {

// The layout, or nullptr: no interpreter was found, or it is one whose frames
// cannot be read (before 3.8, unknown, free-threaded). Never blocks.
const CPythonLayout* python_layout();

// Cold: settles what python_layout() returns. For python_find(), once.
void python_layout_prepare(const PythonApi* api);

// Cold: tells the segment's header, and the state of this thread's Python its ring.
void python_layout_show(char* segment);

// What a DataLoader worker tells of its interpreter and of this thread. False: its
// frames cannot be read.
bool python_describe_thread(abi::WorkerHello* hello);

}  // namespace lull
