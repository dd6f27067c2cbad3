// A bare LD_PRELOAD has nobody to read its events: this starts a relay.
#pragma once

#include "preload/entry/settings.h"

namespace lull {

// Runs `<folder of liblull.so>/../../bin/lull relay --socket PATH` in a session of
// its own, with stdio on /dev/null, no other descriptor, no blocked signal and the
// environment of settings.h. Returns once it runs (or could not be run: false).
//
// The target never sees a child of its own: the first child is made without an
// exit signal, starts the relay and is waited for here; the relay then belongs to
// init. Neither of the two copies the target's memory (both are vforked). Call with
// signals blocked.
bool launch_relay(const Settings& settings, const char* socket_path);

}  // namespace lull
