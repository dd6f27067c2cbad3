// The callback API: one subscriber, told of the API calls that it asked for.
#pragma once

#include "tests/sim/engine/observer.h"

namespace lull::sim::cupti {

// Calls the subscriber, if there is one that wants to know.
void callbacks_enter(const ApiEvent& event);
void callbacks_exit(const ApiEvent& event);

// Whether there is one.
bool callbacks_wanted();

}  // namespace lull::sim::cupti
