// What `lull run` and `lull attach` have in common: --name, --tag, --run-id, --quiet,
// --overhead-budget, and the collector.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/job/session.h"

namespace lull {

void AddSessionOptions(CLI::App* verb, SessionOptions* options);

// --tag alone; `tags` are such as the collector takes.
void AddTagOption(CLI::App* verb, std::vector<std::string>* tags);

// --no-source alone.
void AddSourceOption(CLI::App* verb, v1::JobSettings* settings);

}  // namespace lull
