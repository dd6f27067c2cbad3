// Which wrapper stands for a function that an object is bound to: the hook list once
// more, by name, for objects that were bound before we came.
#pragma once

namespace lull {

// Cheap for the many names that are none of ours. `name` is in a string table that
// ends at `end`.
bool is_hooked_name(const char* name, const char* end);

// What a slot that is bound to `bound` should hold instead: our wrapper if `bound` is
// the function that the wrapper would call, else `bound` itself. Cold.
void* wrapper_of_bound(const char* name, void* bound);

// The other way: true if `bound` is our wrapper for `name`. *original: the function
// behind it, nullptr where that depends on who asks (PyTorch's).
bool is_wrapper(const char* name, void* bound, void** original);

}  // namespace lull
