// The names under which interpreters of Python stand in PATH.
#pragma once

#include <string>
#include <vector>

namespace lull {

// CPython 3.8 to 3.14 is what the shim reads stacks of.
inline constexpr int kOldestPythonMinor = 8;
inline constexpr int kNewestPythonMinor = 14;

// "python3", "python", "python3.8" and so on, one beyond the newest.
std::vector<std::string> InterpreterNames();

}  // namespace lull
