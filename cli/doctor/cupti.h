// The copies of CUPTI on this machine that a job may meet: in the CUDA builds of
// PyTorch, in wheels of their own, in a toolkit, on the loader's path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lull {

// CUDA 11.8, the oldest that the shim takes (preload/cupti).
inline constexpr uint32_t kOldestCupti = 18;

struct CuptiCopy {
  std::string path;
  uint32_t version = 0;  // cuptiGetVersion(), 0: not known
  std::string error;     // why it could not be loaded; "" = it was not asked
};

// Those of the interpreters in PATH first. Each file once.
std::vector<CuptiCopy> FindCupti();

// Looks only in these folders; for tests. `ask`: for their versions. That needs a
// Python interpreter, and a CUDA driver (preload/cupti/library.h).
std::vector<CuptiCopy> FindCuptiIn(const std::vector<std::string>& folders, bool ask);

}  // namespace lull
