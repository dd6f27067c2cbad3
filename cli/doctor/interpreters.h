// The names that interpreters of Python have in PATH.
#pragma once

#include <string>
#include <vector>

namespace lull {

// "python3", "python", "python3.8" and so on, one beyond the newest of
// daemon/attach/examine/python_versions.h.
std::vector<std::string> InterpreterNames();

}  // namespace lull
