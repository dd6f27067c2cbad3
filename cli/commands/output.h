// Answers go to stdout, everything else to stderr.
#pragma once

#include "absl/strings/string_view.h"

namespace lull {

// Returns the exit code: 0, or kExitFailed when stdout takes no more.
int PrintAnswer(absl::string_view verb, absl::string_view text);

}  // namespace lull
