// The message for a wrong command line: what is wrong, and what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lull {

// The one of `known` that `word` differs least from, by letters added, left out,
// changed or swapped; "" when none is near.
std::string Nearest(absl::string_view word, const std::vector<std::string>& known);
// "; did you mean 'report'?", or "" when none is near.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known);

// The same about the options of `app`.
std::string NearestOption(const CLI::App& app, absl::string_view word);

// If argv[1] is neither a verb nor an option, or there is none: says so on stderr and
// returns true.
bool ComplainsOfVerb(const CLI::App& app, int argc, char** argv);

// Prints help or version on stdout, or what is wrong on stderr; returns the exit code.
int ExitOf(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lull
