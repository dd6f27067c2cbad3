// For libFuzzer: formats that are never made by chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace lull {

// Changes a unit; one of fewer than `least` bytes begins as one of the seeds.
inline size_t MutateFromSeeds(const std::vector<std::string>& seeds, size_t least,
                              uint8_t* data, size_t size, size_t max_size,
                              unsigned int number) {
  const std::string& seed = seeds[number % seeds.size()];
  if (size < least && seed.size() <= max_size) {
    size = seed.copy(reinterpret_cast<char*>(data), max_size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

}  // namespace lull
