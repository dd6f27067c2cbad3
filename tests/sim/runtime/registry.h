// What programs compiled by nvcc register when they start: fat binaries, kernels
// by the address of their host stub, device variables by that of their shadow.
// Registration loads nothing; a kernel is looked up in the driver at first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "tests/sim/runtime/link.h"

namespace lull::sim {

struct FatBinary {
  const void* image = nullptr;
  void* library = nullptr;  // CUlibrary, once loaded
};

struct Variable {
  size_t bytes = 0;
  uint64_t address = 0;  // once allocated
};

class Registry {
 public:
  static Registry& get();

  FatBinary* add_binary(const void* image);
  void remove_binary(FatBinary* binary);
  void add_kernel(FatBinary* binary, const void* stub, const char* name);
  void add_variable(const void* shadow, size_t bytes);

  // The driver's handle of a kernel, named by its stub or by the handle itself;
  // null if there is no such kernel.
  void* kernel(const Driver& driver, const void* stub);
  const char* kernel_name(const void* stub);
  // Null if there is no such variable. Needs a current context.
  const Variable* variable(const Driver& driver, const void* shadow);

 private:
  struct Kernel {
    FatBinary* binary;
    std::string name;
    void* handle = nullptr;
  };
  std::mutex mutex_;
  std::unordered_map<const void*, Kernel> kernels_;
  std::unordered_set<const void*> handles_;
  std::unordered_map<const void*, Variable> variables_;
};

}  // namespace lull::sim
