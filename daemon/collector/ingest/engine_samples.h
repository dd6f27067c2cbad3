// What threads of PyTorch's backward engine did when they were looked at: they run no
// Python, so their samples have no stack. What they launch and allocate has one, of
// the node and of whoever called backward() (daemon/base/backward_frames.h).
//
// A sample within such a call is of that call. One of a thread that was not blocked
// lies on its way from one to the next: where both are of one caller it worked for
// that, and is told as of the next. A blocked one waits, mostly for more to do, and is
// nobody's.
//
// Bounded: what is beyond that is not told.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
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

  // What Advance could have told by then was told by an earlier collector.
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
