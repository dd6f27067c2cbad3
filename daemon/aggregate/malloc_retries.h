// cudaMalloc calls that tried again: a caching allocator that gets no memory gives
// back what it holds unused and asks once more, which stops the whole device.
//
// A retry is seen, not guessed: a call that failed, then at least one cudaFree, then a
// call for as many bytes, all by one thread and with no tensor allocated between.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/series.h"

namespace lull::aggregate {

// Not thread-safe. Of one process; give it the events of each thread in their order.
class MallocRetries {
 public:
  struct Retry {
    uint32_t series = 0;  // of the call that failed
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;  // from the start of that call to the end of the retry
    uint64_t bytes = 0;
    bool succeeded = false;
  };

  // The retry that `event`, a memory event of `series`, is.
  std::optional<Retry> Add(const Series& series, const Event& event);

 private:
  struct Failed {
    uint32_t series = 0;
    uint64_t start_ns = 0;
    uint64_t bytes = 0;
    uint64_t frees = 0;
  };
  static constexpr size_t kMaxThreads = 4096;  // with a failure that is open

  absl::flat_hash_map<uint32_t, Failed> failed_;  // by thread
};

}  // namespace lull::aggregate
