// What threads of PyTorch's backward engine did when they were looked at: they run no
// Python, so their samples have no stack. What they launch and allocate has one, of
// the node and of whoever called backward() (daemon/base/backward_frames.h).
//
// A sample within such a call belongs to that call. A thread that is between two calls
// and not blocked is on its way from one to the next: if both have the same caller, it
// works for that caller, and the sample belongs to the next call. A blocked thread
// waits, mostly for more to do, and its sample belongs to nobody.
//
// Memory is bounded: samples beyond the bound are left out.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/event.h"

namespace lull::collector {

// Not thread-safe. Times are CLOCK_MONOTONIC.
class EngineSamples {
 public:
  struct Found {
    aggregate::Event sample;
    uint32_t mark = 0;  // series of the launch or allocation that it is of
  };

  // An earlier collector has told what Advance could tell up to then.
  void Restore(uint64_t judged_ns) { told_ns_ = judged_ns; }

  // A launch, allocation or sync of the thread, in the order of its ring. `caller` is
  // not 0: who called backward().
  void AddMark(const aggregate::Event& event, uint32_t caller);
  void AddSample(const aggregate::Event& sample, bool blocked);

  // All before `judged_ns` is here. What is found comes out once.
  std::vector<Found> Advance(uint64_t judged_ns);

  static constexpr uint64_t kLateNs = 5'000'000'000;
  static constexpr size_t kMost = 60'000;  // of either, in all

 private:
  struct Mark {
    uint64_t start_ns, end_ns;
    uint32_t series, caller;
  };
  struct Sample {
    aggregate::Event event;
    bool blocked;
  };
  struct Thread {
    std::deque<Mark> marks;  // by start
    std::deque<Sample> samples;
  };

  const Mark* Find(const Thread& thread, const Sample& sample) const;

  absl::flat_hash_map<uint32_t, Thread> threads_;
  uint64_t told_ns_ = 0;
  size_t marks_ = 0, samples_ = 0;
};

}  // namespace lull::collector
