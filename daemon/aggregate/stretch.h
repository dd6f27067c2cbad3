// Stretches of device time (IsStretch) at the borders of buckets and ranges. An event
// belongs to the bucket in which it starts; a stretch has to belong to every bucket
// that it lies in, or its parts would not add up in a range: idle and traced time of
// three seconds are those three seconds' and no others'.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/aggregate/buckets.h"
#include "daemon/aggregate/event_views.h"
#include "daemon/base/check.h"

namespace lull::aggregate {

// Clips `event` to [begin, end), absolute times; false: nothing is left. Busy and
// kernel time of Coverage shrink in proportion; inside one bucket nobody knows them
// more exactly.
inline bool ClipStretch(EventType type, uint64_t begin, uint64_t end, Event& event) {
  uint64_t from = std::max(begin, event.start_ns);
  uint64_t to = std::min(end, event.start_ns + event.duration_ns);
  if (from >= to) return false;
  uint64_t left = to - from;
  if (left == event.duration_ns) return true;
  if (type == EventType::kCoverage) {
    double share = static_cast<double>(left) / static_cast<double>(event.duration_ns);
    auto shrunk = [share](uint64_t ns) {
      return static_cast<uint64_t>(static_cast<double>(ns) * share);
    };
    const CoverageView view{event};
    view.set_busy_ns(shrunk(view.busy_ns())).set_kernel_ns(shrunk(view.kernel_ns()));
  } else {
    IdleView{event}.set_rest_ns(IdleView{event}.rest_ns() + event.duration_ns - left);
    if (from > event.start_ns) event.flags |= kFlagContinued;
  }
  event.start_ns = from;
  event.duration_ns = left;
  return true;
}

// Calls visit(event) with the parts of `event` in each bucket of level 0. Parts of Idle
// after the first have kFlagContinued.
template <typename Visitor>
void SplitStretch(EventType type, const Event& event, uint64_t job_start_ns,
                  Visitor&& visit) {
  const uint64_t end = event.start_ns + event.duration_ns;
  for (uint64_t from = event.start_ns; from < end;) {
    uint64_t bucket = AfterStart(from, job_start_ns) / kBucketNs;
    uint64_t to = std::min(end, job_start_ns + (bucket + 1) * kBucketNs);
    LULL_CHECK(from < to, "a stretch lies in no bucket");
    Event part = event;
    ClipStretch(type, from, to, part);
    visit(part);
    from = to;
  }
}

}  // namespace lull::aggregate
