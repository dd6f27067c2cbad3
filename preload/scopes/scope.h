// Named regions of the program, whoever tells of them: from their begin and end to an
// event (abi::EventType::kScope).
//
// They obey the governor: at abi::kThinNativeStacks they have no Python stack, at
// abi::kThinLaunches those of the program are left out and counted. What data and steps
// are told by stays.
//
// 0.2 us for a begin and its end, and 0.5 us for the Python stack; PyTorch's own part
// of calling us is 0.2 us (tests/bench/scopes.py).
#pragma once

#include <cstdint>

#include "preload/abi/event.h"

namespace lull {

// `key`: unique among open scopes, not 0 and below OpenScopes::kKeyEnd. On any thread,
// in any state of the process: where nothing is recorded now, nothing is done. `name`
// must last until the function returns; may be nullptr.
void scope_begin(uint64_t key, const char* name);

// The caller cannot keep apart any more: counted, and nothing else.
void scope_unopened();

// Writes the event of a scope that was begun since recording was, and that the process
// did not sleep in.
void scope_end(uint64_t key, abi::ScopeSource source);

// The same of a range that is ended by its number, on any thread, or never: a table of
// its own, and none within it. `number`: of one range alone, not 0, below 2^51.
void range_begin(uint64_t number, const char* name);
void range_end(uint64_t number, abi::ScopeSource source);

}  // namespace lull
