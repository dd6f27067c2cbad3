// Objects that must stay loaded because we hold pointers into them.
//
// Only the loader can pin an object, and it may not be asked on a hooked path
// (symbols.h). So that is done later: at the latest before the program itself asks for
// an object to be unloaded (hooks/dlclose.cc), but never once the program ends: the
// loader would set an object up again that it has finished with.
#pragma once

namespace lull {

// Any thread, any time: a load for each object that is known. Of 64 objects; a process
// has few that we point into.
void pin_later(const void* address);

// Asks the loader for all that was put off. On a thread that is in the loader's hands
// anyway, or that nobody waits for. Preserves errno and dlerror's message.
void pin_now();

}  // namespace lull
