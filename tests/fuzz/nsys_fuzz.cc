// libFuzzer's entry.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/from_seeds.h"
#include "tests/fuzz/nsys_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lull::imports::FuzzNsys({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int number) {
  static const std::vector<std::string> seeds = lull::imports::NsysSeeds();
  return lull::MutateFromSeeds(seeds, 512, data, size, max_size, number);
}
