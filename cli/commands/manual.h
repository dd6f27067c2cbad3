// Completions and manual pages, made of the texts that --help prints.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lull {

// The verbs that --help lists.
std::vector<const CLI::App*> VerbsOf(const CLI::App& app);
// "--name", of a verb or of lull itself.
std::vector<std::string> LongOptions(const CLI::App& app);

// A script for bash, zsh or fish; "" for another shell.
std::string CompletionScript(const CLI::App& app, absl::string_view shell);

// Section 1 in roff: lull(1), or lull-VERB(1) where `verb` is one of app's.
std::string ManualPage(const CLI::App& app, const CLI::App* verb);

}  // namespace lull
