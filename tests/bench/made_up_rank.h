// Made-up ranks that train, for benches of the collector: launches at even distances, a
// sync and a few allocations every 30 launches, a GC pause now and then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "ingest.pb.h"
#include "tests/daemon/collector/test_job.h"

namespace lull::test {

inline constexpr uint32_t kMadeUpKernels = 240;  // shapes of 80 kernels
inline constexpr uint32_t kMadeUpStacks = 150;   // lines that launch, sync and allocate

struct Pace {
  uint64_t gap_ns = 50'000;   // between two calls, of one rank
  uint64_t jitter_ns = 8192;  // as much longer at most
};

// One rank's main thread and its autograd thread; and, traced, CUPTI's.
class MadeUpRank {
 public:
  MadeUpRank(uint64_t key, bool traced, Pace pace = {})
      : key_(key), traced_(traced), pace_(pace), random_(key) {}

  // Adds runs of `count` events. Returns how many they are.
  size_t AddTo(lull::v1::Batch& batch, size_t count);
  uint64_t now_ns() const { return now_; }

 private:
  static constexpr uint32_t kRings = 3;
  static constexpr uint32_t kCupti = 2;

  void AddRecords(const TestEvent& launch, std::vector<TestEvent>& ring);
  TestEvent Next();

  const uint64_t key_;
  const bool traced_;
  const Pace pace_;
  std::mt19937_64 random_;
  uint32_t correlation_ = 0;
  uint64_t free_ns_ = 0;
  uint64_t step_ = 0;
  uint64_t now_ = kJobStartNs;
  uint64_t address_ = 0;
  uint64_t position_[kRings] = {};
};

// What a process tells before its first event: itself, its stacks.
void AddMadeUpIdentity(lull::v1::Batch& batch, uint64_t key);
void AddMadeUpKernels(lull::v1::Batch& batch, uint64_t key);

}  // namespace lull::test
