#include "daemon/export/slice_lanes.h"

#include <algorithm>

namespace lull::exports {
namespace {

bool Before(const LaneSlice& a, const LaneSlice& b) {
  if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
  if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
  return a.inner < b.inner;
}
// For a heap with the first one on top.
bool After(const LaneSlice& a, const LaneSlice& b) { return Before(b, a); }

}  // namespace

void SliceLanes::Add(const LaneSlice& slice, LaneSink& sink) {
  newest_end_ns_ = std::max(newest_end_ns_, slice.end_ns);
  if (nested_ && slice.end_ns - slice.start_ns > kLong && long_.size() < kMostHeld) {
    long_.push_back(slice);
    return;
  }
  held_.push_back(slice);
  std::push_heap(held_.begin(), held_.end(), After);
  while (!held_.empty() && (held_.size() > kMostHeld ||
                            held_.front().start_ns + kHold < newest_end_ns_)) {
    Release(sink);
  }
}

void SliceLanes::Release(LaneSink& sink) {
  std::pop_heap(held_.begin(), held_.end(), After);
  const LaneSlice slice = held_.back();
  held_.pop_back();
  Place(slice, 0, sink);
}

void SliceLanes::Place(const LaneSlice& slice, size_t first_lane, LaneSink& sink) {
  for (size_t i = first_lane; i < kMostLanes; ++i) {
    if (i == lanes_.size()) lanes_.emplace_back();
    Lane& lane = lanes_[i];
    if (slice.start_ns < lane.last_start_ns) continue;  // it comes too late
    while (!lane.open.empty() && lane.open.back() <= slice.start_ns) {
      sink.End(i, lane.open.back());
      lane.open.pop_back();
    }
    if (!lane.open.empty() && (!nested_ || lane.open.back() < slice.end_ns)) continue;
    lane.open.push_back(slice.end_ns);
    lane.last_start_ns = slice.start_ns;
    return sink.Begin(i, slice);
  }
  sink.LeftOut();
}

void SliceLanes::Finish(LaneSink& sink) {
  while (!held_.empty()) Release(sink);
  std::sort(long_.begin(), long_.end(), Before);
  // Those that are there go on meanwhile.
  const size_t first_lane = lanes_.size();
  for (const LaneSlice& slice : long_) Place(slice, first_lane, sink);
  long_.clear();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    for (; !lanes_[i].open.empty(); lanes_[i].open.pop_back()) {
      sink.End(i, lanes_[i].open.back());
    }
  }
  lanes_.clear();
}

}  // namespace lull::exports
