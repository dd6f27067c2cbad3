// What a terminal gets that a file does not: colour, its width, a pager; as git does
// it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace lull {

// --color=auto|always|never, and --no-pager where `answers` (the verb prints to
// stdout). Of the process: one verb is chosen.
void AddTerminalOptions(CLI::App* verb, bool answers);

// Whether what goes to `fd` is coloured: as --color says; without it, on a terminal
// that is not dumb, unless $NO_COLOR is set and not empty (no-color.org).
bool UseColour(int fd);

// $COLUMNS, else the width of the terminal on `fd`, else 0.
size_t TerminalColumns(int fd);

// Writes `text` to the pager and waits for it: $LULL_PAGER, else $PAGER, else less with
// -FRX unless $LESS is set; run by the shell. False, with nothing written, where there
// is no need of it (stdout is no terminal, or `text` fits it, or --no-pager, or the
// pager is
// "" or "cat"), or where it cannot be started. Who leaves the pager early wanted no
// more.
bool ShowInPager(absl::string_view text);

}  // namespace lull
