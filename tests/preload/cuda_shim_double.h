// Stands in for the parts of the shim that the CUDA hooks lean on: a segment of
// its own without any relay, rings, and stacks of fixed names. Linked together
// with the hooks into one library that the tests load ahead of the fake CUDA.
#pragma once

#include <cstdint>

#include "preload/abi/segment.h"
#include "preload/entry/state.h"

inline constexpr lull::abi::Ref kWholePythonStack = 11;
inline constexpr lull::abi::Ref kPythonTip = 12;
inline constexpr lull::abi::Ref kNativeStack = 13;

extern "C" {
// Empties the ring of this thread and records from now on.
void double_start_recording();
void double_set_mode(lull::Mode mode);
char* double_segment();
// Events of this thread since double_start_recording().
uint64_t double_event_count();
lull::abi::Event double_event(uint64_t position);
bool double_thread_is_watched();
// From here on this thread has made a node of the backward graph whose line nobody has
// noted yet; and the stack that was noted for it, once it was.
void double_make_node();
bool double_noted(lull::abi::Ref* stack);
}
