// What memory did, in words that `lull memory` and the advice share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "query.pb.h"

namespace lull {

// "1 call", "1,204 calls"
std::string Counted(uint64_t count, absl::string_view noun);

// Held by a caching allocator and not handed out.
inline uint64_t Unused(int64_t live, int64_t reserved) {
  return static_cast<uint64_t>(std::max<int64_t>(0, reserved - live));
}

// "torch_cuda grows by 1.00 MiB a step, steadily from step 100 to 199 (99.0 MiB in
// all), 99.0 MiB of it at train.py:12 step". A line is named that has at least half.
std::string GrowthWords(const v1::MemoryRow& row);

// "cudaMalloc found no memory 5 times in pid 4312: 3 calls tried again after ..."
std::string RetryWords(const v1::MallocRetries& retries);

}  // namespace lull
