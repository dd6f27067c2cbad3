// Defaults from lull.toml: $XDG_CONFIG_HOME/lull/lull.toml (the user's), and lull.toml
// in the working directory, beside the code. The command line wins over the
// environment, that over ./lull.toml, that over the user's file. docs/configuration.md.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace lull {

// Makes what the files say the defaults of the chosen verb's options; before app is
// parsed. `words` is lull's part of the command line, the verb last. Only verbs that
// talk to a collector have a use for it, and not `relay`, which the shim starts. A file
// that others may have written is passed over, and stderr says so. INVALID_ARGUMENT
// names file and key.
absl::Status ApplyConfiguration(CLI::App& app, const std::vector<std::string>& words);

}  // namespace lull
