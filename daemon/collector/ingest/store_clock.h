// The clock that ages of jobs are measured with (storage::ClockRow).
//
// While the host runs it goes as CLOCK_BOOTTIME does, which nobody can set; so a jump
// of CLOCK_REALTIME makes no job older or younger. Only across a boot CLOCK_REALTIME
// says how much time went by, as there is no other clock. Then at most a week counts: a
// host whose battery is empty must not outdate all jobs at once.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/storage/rows.h"

namespace lull::collector {

// What the clocks of the host show.
struct HostClocks {
  uint64_t realtime_ns = 0;
  uint64_t boottime_ns = 0;
  std::string boot_id;  // "" = not known

  static HostClocks Now();
};

// Not thread-safe.
class StoreClock {
 public:
  // Goes on from what the store remembers. `newest_ns`: the latest time that the store
  // holds, for one that never had a clock; 0 for an empty one.
  StoreClock(const storage::ClockRow& last, uint64_t newest_ns, const HostClocks& host);

  // Never goes back.
  uint64_t Advance(const HostClocks& host);
  // To be stored with whatever was stamped.
  const storage::ClockRow& row() const { return row_; }

 private:
  storage::ClockRow row_;
};

}  // namespace lull::collector
