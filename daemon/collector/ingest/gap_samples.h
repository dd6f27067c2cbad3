// Which samples of host threads lie in which idle stretches: the stretches that are
// judged by the sample's thread, one at most of each device. Either may come first: a
// gap is judged seconds after it, and a sample of a busy relay can be later still.
// A sample that is a stretch (of an imported trace) lies in each idle stretch that it
// meets, with the part that they share. Such samples of one thread do not overlap.
//
// Memory is bounded: what is forgotten, or beyond the bound, is found by nothing that
// comes later. Shares of a row count only samples that were found, so they stay right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/event.h"
#include "daemon/base/ids.h"

namespace lull::collector {

// Not thread-safe.
class GapSamples {
 public:
  struct Sample {
    uint64_t time_ns = 0;
    uint64_t duration_ns = 0;  // of a stretch, which weighs just that
    uint64_t weight_ns = 0;
    uint64_t doing = 0;  // its state and quality
    uint32_t series = 0;

    uint64_t end_ns() const { return time_ns + duration_ns; }
  };
  struct Found {
    Sample sample;
    uint32_t idle_series = 0;
    ThreadId tid{};
  };

  void AddSample(const aggregate::Event& sample);
  // A stretch, of whatever device, in [start, start + duration).
  void AddIdle(const aggregate::Event& idle);

  // What has been found since the last call. Nothing is found while events of an
  // earlier collector are replayed: it found those pairs.
  std::vector<Found> Take();
  void Replay(bool on) { replaying_ = on; }

  // No stretch and no sample that lies before it will come any more.
  void Forget(uint64_t before_ns);

  size_t size() const { return held_; }

 private:
  struct Idle {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t series = 0;
  };
  struct Thread {
    absl::btree_multimap<uint64_t, Sample> samples;  // by time
    absl::btree_multimap<uint64_t, Idle> idle;       // by start
    uint64_t longest_ns = 0;     // of the idle stretches that were ever here
    bool has_stretches = false;  // among its samples
  };
  // Samples of 56 bytes. Ten threads at 200 samples a second fill it in two minutes.
  static constexpr size_t kMost = 250'000;

  void Find(ThreadId tid, const Sample& sample, const Idle& idle);
  void MakeRoom();

  absl::flat_hash_map<ThreadId, Thread> threads_;
  size_t held_ = 0;
  bool replaying_ = false;
  std::vector<Found> found_;
};

}  // namespace lull::collector
