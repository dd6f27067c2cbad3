// Causes of idle time, as programs and as people read them.
#pragma once

#include <string>

#include "query.pb.h"

namespace lull {

// "data", "launch_bound"; "unknown" of a cause that is not known: the collector is
// newer.
std::string CauseKey(v1::GapCause cause);
// "data", "launch-bound", "GC pause".
std::string CauseName(v1::GapCause cause);

}  // namespace lull
