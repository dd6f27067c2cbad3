#include "daemon/collector/ingest/region_feed.h"

namespace lull::collector {

void RegionFeed::AddScope(const Event& event) {
  const uint32_t stack = series_[event.series].native_stack;
  const uint64_t end_ns = event.start_ns + event.duration_ns;
  // 0: a name that found no room.
  if (stack == 0 || end_ns <= told_ns_ || end_ns < event.start_ns) return;
  if (waiting_.size() >= kMost) waiting_.pop_front();
  waiting_.push_back({event.start_ns, end_ns, stack});
}

uint32_t RegionFeed::Series(EventType type, uint8_t cause, uint32_t stack) {
  return series_.Intern({.type = type, .variant = cause, .native_stack = stack});
}

}  // namespace lull::collector
