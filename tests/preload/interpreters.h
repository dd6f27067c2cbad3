// Runs a puppet script in every CPython that this machine has, from 3.8 to 3.15.
#pragma once

#include <string>
#include <vector>

namespace lull::testing {

struct Interpreter {
  std::string path;     // of the executable itself, not of a launcher of it
  std::string version;  // "3.11"
};

// One of each minor version: those named in LULL_TEST_PYTHONS (paths, separated by
// colons), else python3.8 to python3.15 in the PATH or in pyenv. A name that does not
// lead to a working interpreter with ctypes counts as absent.
const std::vector<Interpreter>& interpreters();

struct Outcome {
  int status;  // as of wait()
  std::string output;
  std::string errors;
};

// `interpreter script arguments...` with additions to the environment ("A=b").
Outcome run_script(const std::string& interpreter, const std::string& script,
                   const std::vector<std::string>& arguments,
                   const std::vector<std::string>& environment);

}  // namespace lull::testing
