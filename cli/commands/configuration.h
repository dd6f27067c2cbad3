// Defaults from lull.toml: $XDG_CONFIG_HOME/lull/lull.toml (the user's), and lull.toml
// in the working directory, beside the code. The command line wins over the
// environment, that over ./lull.toml, that over the user's file. docs/configuration.md.
#pragma once

#include <CLI/CLI.hpp>

#include "absl/status/status.h"

namespace lull {

// Makes what the files say the defaults of the chosen verb's options. Call it when app
// has been parsed and before the verb is executed. Only verbs that talk to a collector
// have a use for it, and not `relay`, which the shim starts. A file that cannot be
// read, or that others may have written, is passed over, and stderr says so.
// INVALID_ARGUMENT names file and key; for `run` stderr does, and the key is left out.
absl::Status ApplyConfiguration(CLI::App& app);

}  // namespace lull
