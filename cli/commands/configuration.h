// Defaults from lull.toml: $XDG_CONFIG_HOME/lull/lull.toml (the user's), and lull.toml
// in the working directory, beside the code. The command line wins over the
// environment, that over ./lull.toml, that over the user's file. docs/configuration.md.
#pragma once

#include <CLI/CLI.hpp>

#include "absl/status/status.h"

namespace lull {

// Makes the values of the files the defaults of the chosen verb's options. Call it
// after app has been parsed, and before the verb is executed. Only verbs that talk to a
// collector use it; `relay`, which the shim starts, takes no-source alone. A file that
// cannot be read, or that others may have written, is skipped with a message on stderr.
// INVALID_ARGUMENT names file and key; `run` and `relay` print that to stderr instead,
// and leave the key out. Where anything was left out, no source text is kept.
absl::Status ApplyConfiguration(CLI::App& app);

}  // namespace lull
