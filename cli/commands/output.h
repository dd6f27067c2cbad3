// Answers go to stdout, everything else to stderr.
#pragma once

#include "absl/strings/string_view.h"

namespace lull {

// Prints JSON as it is, and text for people with colour where that is wanted; what is
// longer than the terminal is shown in a pager. Returns the exit code: 0, or
// kExitFailed when stdout takes no more.
int PrintAnswer(absl::string_view verb, bool json, absl::string_view text);

}  // namespace lull
