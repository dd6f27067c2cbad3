// What the kernel counts about one thread's turns on processors.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lull::relay {

struct Scheduling {
  uint64_t delay_ns = 0;     // ready to run, without a processor
  uint64_t slices = 0;       // times that it got one
  uint64_t involuntary = 0;  // times that it was pre-empted
  int processor = -1;        // where it runs, or last ran
  uint64_t ran_ns = 0;       // on processors, as of the last tick of a clock

  bool operator==(const Scheduling&) const = default;
};

// The files' texts: schedstat, field 39 of stat, nonvoluntary_ctxt_switches of status.
bool ParseSchedstat(absl::string_view text, Scheduling* scheduling);
bool ParseProcessor(absl::string_view stat, Scheduling* scheduling);
bool ParseSwitches(absl::string_view status, Scheduling* scheduling);

// It lacked a processor for so little that this says nothing of any gap. What moved the
// thread is not asked for: two of the three files cost most of a look.
inline constexpr uint64_t kLittleDelayNs = 100'000;

}  // namespace lull::relay
