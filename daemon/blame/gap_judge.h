// Judges one gap: its parts, each with its cause. A pure function of what is known of
// the gap and of the two threads that matter. The rules are in docs/blame.md.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/blame/run_queue.h"
#include "daemon/blame/thread_timeline.h"
#include "daemon/blame/union.h"

namespace lull::blame {

// A thread that may be to blame, and what it had submitted before the gap ended.
struct Suspect {
  ThreadTimeline* thread = nullptr;  // nullptr: none known
  ThreadId tid{};
  uint32_t before = 0;
};

struct Gap {
  DeviceId device{};
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  Suspect launcher;      // T; none: the whole gap is unknown
  Suspect predecessor;   // P, launched the operation that ended with the start
  uint64_t call_ns = 0;  // l
  // The end of L, where X is the first that it submitted; else 0. What L takes of the
  // gap is its own if it is more than that.
  uint64_t call_end_ns = 0;
  uint64_t slow_call_ns = 0;
  // The device ran dry while a thread was in a sync, and the hook saw the sync end a
  // moment before that: clocks of two machines, and calls that return when all but the
  // last bytes are copied.
  uint64_t sync_slack_ns = 0;
  uint32_t after = 0;  // series of L, 0 = none
  bool dependency = false;
  bool launch_bound = false;
  // Host time without a cause of its own is judged by its surroundings: what T and P
  // did when the gap opened, and what ended it. Without these it is unknown.
  bool opening_known = true;
  bool ending_known = true;
};

// Appends the parts, in the order of time.
void Judge(const Gap& gap, const Union& lost, std::vector<Part>* parts);

}  // namespace lull::blame
