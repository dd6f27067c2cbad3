// Where the other parts of lull lie, relative to the running executable: the
// install tree is a folder that can be copied anywhere.
//
//   PREFIX/bin/lull  PREFIX/bin/lulld  PREFIX/lib/lull/liblull.so
//   BUILD/cli/lull   BUILD/daemon/collector/lulld  BUILD/preload/liblull.so
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace lull {

inline constexpr char kVersion[] = LULL_VERSION;

// $LULL_PRELOAD_LIBRARY, or the library beside us. NOT_FOUND names the places that were
// tried; FAILED_PRECONDITION when its path cannot be written in LD_PRELOAD (which
// splits at spaces and colons).
absl::StatusOr<std::string> FindPreloadLibrary();

// $LULL_COLLECTOR_PROGRAM, or `lulld` beside us.
absl::StatusOr<std::string> FindCollectorProgram();

}  // namespace lull
