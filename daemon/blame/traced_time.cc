#include "daemon/blame/traced_time.h"

#include "daemon/blame/instant.h"

namespace lull::blame {

uint64_t TracedTime::next_ns() const {
  return marks_.empty() ? kNever : marks_[0].time_ns;
}

bool TracedTime::Pass() {
  TraceMark mark = marks_[0];
  marks_.DropFront(1);
  if (mark.on == on_) return false;
  if (mark.on) {
    on_ = true;
    since_ns_ = mark.time_ns;
  } else {
    End(mark.time_ns);
  }
  return true;
}

void TracedTime::End(uint64_t time_ns) {
  on_ = false;
  passed_.push_back({since_ns_, time_ns});
}

bool TracedTime::Contains(uint64_t start_ns, uint64_t end_ns) const {
  if (on_ && start_ns >= since_ns_) return true;
  auto it = std::partition_point(passed_.begin(), passed_.end(), [&](const Stretch& s) {
    return s.end_ns <= start_ns;
  });
  return it != passed_.end() && it->start_ns <= start_ns && end_ns <= it->end_ns;
}

void TracedTime::DropBefore(uint64_t time_ns) {
  auto it = std::partition_point(passed_.begin(), passed_.end(),
                                 [&](const Stretch& s) { return s.end_ns < time_ns; });
  passed_.erase(passed_.begin(), it);
}

}  // namespace lull::blame
