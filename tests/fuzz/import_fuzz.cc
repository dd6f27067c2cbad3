// libFuzzer's entry.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/import_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lull::imports::FuzzImport({reinterpret_cast<const char*>(data), size});
  return 0;
}
