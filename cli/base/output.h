// Answers go to stdout, everything else to stderr.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lull {

// "lull VERB: MESSAGE" on stderr.
void PrintError(absl::string_view verb, absl::string_view message);

// The same, and the exit code that goes with it: what is wrong with a command line has
// one of its own.
int Fail(absl::string_view verb, absl::string_view message, int exit_code);
int Fail(absl::string_view verb, const absl::Status& status);

// As it is.
void Print(absl::string_view text);

// JSON as it is, and text for people with colour where that is wanted; what is longer
// than the terminal is shown in a pager.
void PrintAnswer(bool json, absl::string_view text);

// Before the end: whether stdout has taken all that was printed. If not, stderr says
// so, once.
bool FlushOutput(absl::string_view verb);

}  // namespace lull
