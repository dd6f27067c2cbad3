// What was live at the end of each step, of each whole (TotalOf).
//
// Memory events come ring by ring, so one of another thread may come in after a step
// that it belongs before. Changes and steps are held until Advance says that all has
// come, and are then put in order; what comes later still counts from then on.
//
// Bounded: a sample for each of the first 1024 steps, then for every second, fourth,
// ... step; those that do not fit any more are to be forgotten (stride()).
//
// Not thread-safe. After a restart of the collector a step whose end was held back
// then has no sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace lull::aggregate {

class StepMemory {
 public:
  struct Sample {
    uint64_t ordinal = 0;  // of the step among all that came, from 0
    uint64_t step = 0;     // its number
    uint64_t end_ns = 0;
    std::vector<std::pair<uint32_t, int64_t>> live;  // bytes by series, ascending
  };

  // What an earlier life left behind: what is live now, and the samples that it took.
  void RestoreLive(uint32_t series, int64_t bytes) { live_[series] += bytes; }
  void RestoreSamples(size_t count, uint64_t first_stride, uint64_t last_ordinal);

  void Change(uint64_t time_ns, uint32_t series, int64_t bytes);
  void EndStep(uint64_t number, uint64_t end_ns);

  // All that happened before `as_of_ns` has come in.
  void Advance(uint64_t as_of_ns);

  // Samples since the last call, of the steps whose ordinal is a multiple of stride().
  std::vector<Sample> TakeSamples();
  uint64_t stride() const { return stride_; }

  static constexpr size_t kMaxSamples = 1024;

 private:
  struct Held {
    uint64_t time_ns;
    uint32_t series;
    int64_t bytes;
  };
  struct Step {
    uint64_t number;
    uint64_t end_ns;
  };
  // 6 MiB. More than that between two Advances is put in order as far as it has come.
  static constexpr size_t kMaxHeld = 1 << 18;

  void Take(const Step& step);

  std::vector<Held> held_;
  std::vector<Step> steps_;
  absl::flat_hash_map<uint32_t, int64_t> live_;
  std::vector<Sample> samples_;
  uint64_t next_ordinal_ = 0;
  uint64_t stride_ = 1;
  size_t kept_ = 0;  // samples taken with this stride, wherever they are
};

}  // namespace lull::aggregate
