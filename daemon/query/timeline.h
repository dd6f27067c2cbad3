// When each device was busy, and idle for which cause: bins over the whole range, the
// gaps one by one as far as there is room, and steps beside them.
//
// Bounded whatever the job: where a store holds more idle stretches than can be looked
// at, bins are made of whole buckets, and gaps are looked at in stretches of time that
// are spread evenly. The reply says so.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/query/sections.h"

namespace lull::query {

struct TimelineBounds {
  uint64_t events = 4'000'000;  // that are looked at one by one
  size_t gaps = 100'000;        // in the reply: the longest
  size_t kinds = 500;           // with lines and stacks
  size_t bins = 16'384;         // of all bands
};

// Of all of the range that is asked for, whatever phase is shown.
absl::Status FillTimeline(View& view, const TimelineBounds& bounds,
                          lull::v1::Timeline* reply);

}  // namespace lull::query
