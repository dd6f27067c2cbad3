// Which call of CUDA a hooked event is around. The hooks and CUPTI do not read their
// clocks at the same moment, so an event may begin a moment after the call that it is
// around; a reader that goes by nesting would miss its line. So it gets the call's
// times.
//
// Events come in about the order of time, but CUPTI tells of one thread long after
// another: a hook waits until a later call of its own thread has come. Bounded: what
// finds no call for long, or beyond so many the oldest, keeps the times that it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "daemon/export/trace_writer.h"

namespace lull::exports {

class CallLines {
 public:
  static constexpr size_t kMostHeld = 1 << 18;

  struct Held {
    uint32_t series = 0;
    Slice slice;
    bool has_call = false;  // that CUPTI told
  };

  void AddHook(const Held& hook);
  // As CUPTI has it.
  void AddCall(const Slice& call);

  // Those of which no call will come any more, with their times as they are to be told.
  std::vector<Held> Take();
  std::vector<Held> TakeAll();

 private:
  struct Thread {
    std::deque<Held> hooks;
    std::deque<Slice> calls;
  };
  void Settle(Thread& thread);
  // All hooks that ended before.
  void SettleBefore(uint64_t time_ns);
  uint64_t EndOfTheOlderHalf() const;

  std::map<uint32_t, Thread> threads_;
  std::vector<Held> done_;
  size_t held_ = 0;            // hooks
  uint64_t newest_ns_ = 0;     // end of the latest event
  uint64_t looked_at_ns_ = 0;  // that when all threads were looked at last
};

}  // namespace lull::exports
