// libFuzzer's entry.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/snapshot_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lull::imports::FuzzSnapshot({reinterpret_cast<const char*>(data), size});
  return 0;
}

// A pickle of so many fields is never made by chance: each unit begins as a seed.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  static const std::vector<std::string> seeds = lull::imports::SnapshotSeeds();
  const std::string& one = seeds[seed % seeds.size()];
  if (size < 16 && one.size() <= max_size) {
    size = one.copy(reinterpret_cast<char*>(data), max_size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
