// libFuzzer's entry; LULL_FUZZ_TARGET is the parser that this program is for.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/relay_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lull::relay::LULL_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
