// libFuzzer's entry for what a relay sends. Besides bytes, whole fields are mutated.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/fuzz/ingest_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lull::collector::FuzzIngest({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  lull::v1::IngestRequest request;
  bool parsed = request.ParseFromArray(data, static_cast<int>(size));
  if (seed % 4 == 0 || (!parsed && seed % 2 == 0)) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  std::mt19937_64 random(seed);
  if (!parsed || size == 0) {
    auto seeds = lull::collector::IngestSeeds();
    request = seeds[random() % seeds.size()];
  }
  lull::collector::MutateMessage(request, random);
  std::string bytes = request.SerializeAsString();
  if (bytes.size() > max_size) return size;
  memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
