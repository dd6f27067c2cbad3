// What a terminal gets that a file does not: colour, its width, a pager; as git does
// it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace lull {

// Adds --color=auto|always|never, and --no-pager if `answers` (the verb prints to
// stdout). They hold for the whole process, as only one verb is chosen.
void AddTerminalOptions(CLI::App* verb, bool answers);

// Whether what goes to `fd` is coloured: as --color says; without it, on a terminal
// that is not dumb, unless $NO_COLOR is set and not empty (no-color.org).
bool UseColour(int fd);

// $COLUMNS, else the width of the terminal on `fd`, else 0.
size_t TerminalColumns(int fd);

// Writes `text` to the pager and waits for it: $LULL_PAGER, else $PAGER, else less with
// -FRX unless $LESS is set; run by the shell. False, with nothing written, if no pager
// is needed (stdout is no terminal, `text` fits it, --no-pager was given, or the pager
// is "" or "cat") or if it cannot be started. It is no error if the user leaves the
// pager early.
bool ShowInPager(absl::string_view text);

}  // namespace lull
