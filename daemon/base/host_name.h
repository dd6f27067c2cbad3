// What this host calls itself.
#pragma once

#include <string>

namespace lull {

// As `hostname` says it; "" where it cannot be told.
std::string HostName();

}  // namespace lull
