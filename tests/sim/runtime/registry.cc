#include "tests/sim/runtime/registry.h"

namespace lull::sim {

Registry& Registry::get() {
  // Never destroyed: __cudaUnregisterFatBinary comes from exit handlers.
  static auto* registry = new Registry;
  return *registry;
}

FatBinary* Registry::add_binary(const void* image) {
  return new FatBinary{image, nullptr};
}

void Registry::remove_binary(FatBinary* binary) {
  std::lock_guard lock(mutex_);
  std::erase_if(kernels_,
                [&](const auto& entry) { return entry.second.binary == binary; });
  delete binary;
}

void Registry::add_kernel(FatBinary* binary, const void* stub, const char* name) {
  std::lock_guard lock(mutex_);
  kernels_[stub] = {binary, name, nullptr};
}

void Registry::add_variable(const void* shadow, size_t bytes) {
  std::lock_guard lock(mutex_);
  variables_[shadow] = {bytes, 0};
}

void* Registry::kernel(const Driver& driver, const void* stub) {
  std::lock_guard lock(mutex_);
  auto it = kernels_.find(stub);
  if (it == kernels_.end()) {
    return handles_.contains(stub) ? const_cast<void*>(stub) : nullptr;
  }
  Kernel& kernel = it->second;
  if (kernel.handle != nullptr) return kernel.handle;
  void*& library = kernel.binary->library;
  if (library == nullptr &&
      driver.cuLibraryLoadData(&library, kernel.binary->image, nullptr, nullptr, 0,
                               nullptr, nullptr, 0) != 0) {
    return nullptr;
  }
  if (driver.cuLibraryGetKernel(&kernel.handle, library, kernel.name.c_str()) != 0) {
    return nullptr;
  }
  handles_.insert(kernel.handle);
  return kernel.handle;
}

const char* Registry::kernel_name(const void* stub) {
  std::lock_guard lock(mutex_);
  auto it = kernels_.find(stub);
  return it == kernels_.end() ? nullptr : it->second.name.c_str();
}

const Variable* Registry::variable(const Driver& driver, const void* shadow) {
  std::lock_guard lock(mutex_);
  auto it = variables_.find(shadow);
  if (it == variables_.end()) return nullptr;
  Variable& variable = it->second;
  if (variable.address == 0 &&
      driver.cuMemAlloc_v2(&variable.address, variable.bytes) != 0) {
    return nullptr;
  }
  return &variable;
}

}  // namespace lull::sim
