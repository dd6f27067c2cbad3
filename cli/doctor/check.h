// One thing that lull needs from a machine, and whether it has it.
#pragma once

#include <string>
#include <vector>

namespace lull {

struct Check {
  // kWarning: lull works, but shows less. kError: `lull run` will not work.
  enum class Status { kOk, kWarning, kError };

  std::string name;  // "glibc", one word or two
  Status status = Status::kOk;
  std::string detail;       // what was found
  std::string advice = {};  // what to do; "" when it is well
};

// The kernel, the C library and what containers like to take away.
std::vector<Check> CheckSystem();
// Directories, disk space, sockets.
std::vector<Check> CheckPlaces();
// lull's own parts: the shim is loaded and says hello, the collector starts.
std::vector<Check> CheckParts();
// What jobs are made of: interpreters and PyTorch.
std::vector<Check> CheckSurroundings();
// The GPU, its driver, CUPTI, and what is traced by default.
std::vector<Check> CheckGpu();

}  // namespace lull
