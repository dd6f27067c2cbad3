#include "daemon/blame/union.h"

#include <algorithm>

namespace lull::blame {

void Union::Add(uint64_t start_ns, uint64_t end_ns) {
  if (start_ns >= end_ns) return;
  if (size() == 0) {
    stretches_.push_back({start_ns, end_ns, 0});
    return;
  }
  Stretch& last = stretches_.back();
  if (start_ns > last.end_ns) {
    uint64_t before = last.before_ns + (last.end_ns - last.start_ns);
    stretches_.push_back({start_ns, end_ns, before});
  } else if (start_ns >= last.start_ns) {
    last.end_ns = std::max(last.end_ns, end_ns);
  } else {
    Insert(start_ns, end_ns);
  }
}

void Union::Insert(uint64_t start_ns, uint64_t end_ns) {
  auto begin = stretches_.begin() + static_cast<ptrdiff_t>(first_);
  auto from = std::partition_point(
      begin, stretches_.end(), [&](const Stretch& s) { return s.end_ns < start_ns; });
  auto to = std::partition_point(
      from, stretches_.end(), [&](const Stretch& s) { return s.start_ns <= end_ns; });
  uint64_t before = from->before_ns;
  if (from != to) {
    start_ns = std::min(start_ns, from->start_ns);
    end_ns = std::max(end_ns, std::prev(to)->end_ns);
  }
  from = stretches_.erase(from, to);
  from = stretches_.insert(from, {start_ns, end_ns, before});
  for (; from != stretches_.end(); ++from) {
    from->before_ns = before;
    before += from->end_ns - from->start_ns;
  }
}

size_t Union::FirstEndingAfter(uint64_t time_ns) const {
  auto begin = stretches_.begin() + static_cast<ptrdiff_t>(first_);
  auto it = std::partition_point(begin, stretches_.end(),
                                 [&](const Stretch& s) { return s.end_ns <= time_ns; });
  return static_cast<size_t>(it - stretches_.begin());
}

uint64_t Union::CoveredBefore(uint64_t time_ns) const {
  size_t at = FirstEndingAfter(time_ns);
  if (at == stretches_.size()) {
    const Stretch& last = stretches_.back();
    return last.before_ns + (last.end_ns - last.start_ns);
  }
  const Stretch& stretch = stretches_[at];
  uint64_t inside = time_ns > stretch.start_ns ? time_ns - stretch.start_ns : 0;
  return stretch.before_ns + inside;
}

uint64_t Union::Covered(uint64_t start_ns, uint64_t end_ns) const {
  if (size() == 0 || start_ns >= end_ns) return 0;
  return CoveredBefore(end_ns) - CoveredBefore(start_ns);
}

bool Union::Touches(uint64_t start_ns, uint64_t end_ns) const {
  size_t at = FirstEndingAfter(start_ns);
  return start_ns < end_ns && at < stretches_.size() &&
         stretches_[at].start_ns < end_ns;
}

bool Union::FirstAfter(uint64_t time_ns, uint64_t* start_ns, uint64_t* end_ns) const {
  size_t at = FirstEndingAfter(time_ns);
  if (at == stretches_.size()) return false;
  *start_ns = stretches_[at].start_ns;
  *end_ns = stretches_[at].end_ns;
  return true;
}

void Union::DropBefore(uint64_t time_ns) {
  first_ = FirstEndingAfter(time_ns);
  if (first_ < 1024 || first_ * 2 < stretches_.size()) return;
  stretches_.erase(stretches_.begin(),
                   stretches_.begin() + static_cast<ptrdiff_t>(first_));
  first_ = 0;
}

}  // namespace lull::blame
