// Numbers on a command line: those of CLI11 take nan for a number within any range, and
// name ranges by their 300 digits.
#pragma once

#include <CLI/CLI.hpp>

namespace lull {

// A number from `least` to `most`.
CLI::Validator NumberFrom(double least, double most);

// A PID, as `lull ps` shows them.
CLI::Validator Pid();

}  // namespace lull
