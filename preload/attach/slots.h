// The slots (GOT entries) through which the loaded objects call each other, exchanged
// for our wrappers and back: what LD_PRELOAD does by the order of the search, done
// after the fact.
//
// A slot is one aligned word, stored to atomically: whoever calls through it meanwhile
// reaches either function. Objects that come by a later dlopen are found when the
// loader's count of them has changed (see slots_follow). Pointers that the program
// keeps elsewhere (in variables, or asked for before we came) are not slots and stay.
//
// One thread at a time is at work here; another one returns at once, as if done.
#pragma once

#include <cstdint>

namespace lull {

enum class Slots { kOurs, kTheirs };

// Goes on exchanging slots for `budget_ns` of work (WorkClock). True when all are as wanted.
bool slots_set(Slots wanted, uint64_t budget_ns);

// While slots are kOurs: takes care of objects that were loaded since. Cheap when there
// are none (some 100 ns): for places that a program passes after a dlopen. Not inside
// an allocator.
void slots_follow();

}  // namespace lull
