// Slices of one row of a viewer in the order of their starts, the outer before the
// inner, on lanes on which they nest: a viewer of begins and ends closes the one that
// began last, whatever it is.
//
// They come in about the order of their ends. Bounded: one that comes later than by
// kHold, or that fits nowhere, gets a lane of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lull::exports {

struct LaneSlice {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t value = 0;  // an amount, or the number of a step
  uint32_t label = 0;
  uint32_t correlation = 0;
  bool inner = false;  // of two that begin and end together
};

// Takes what is in order.
class LaneSink {
 public:
  virtual ~LaneSink() = default;
  virtual void Begin(size_t lane, const LaneSlice& slice) = 0;
  virtual void End(size_t lane, uint64_t time_ns) = 0;
  virtual void LeftOut() = 0;  // too many at once
};

class SliceLanes {
 public:
  static constexpr uint64_t kHold = 2'000'000'000;
  // What lasts longer is told at the end, on lanes of its own: what it is around would
  // have to wait for it.
  static constexpr uint64_t kLong = 1'000'000'000;
  static constexpr size_t kMostHeld = 65'536;
  static constexpr size_t kMostLanes = 256;

  // `nested`: slices lie within others, as calls do; else one comes after another.
  explicit SliceLanes(bool nested) : nested_(nested) {}

  void Add(const LaneSlice& slice, LaneSink& sink);
  void Finish(LaneSink& sink);
  size_t held() const { return held_.size() + long_.size(); }

 private:
  struct Lane {
    std::vector<uint64_t> open;  // ends, the innermost last
    uint64_t last_start_ns = 0;
  };
  void Release(LaneSink& sink);
  void Place(const LaneSlice& slice, size_t first_lane, LaneSink& sink);

  const bool nested_;
  std::vector<LaneSlice> held_;  // a heap
  std::vector<LaneSlice> long_;
  std::vector<Lane> lanes_;
  uint64_t newest_end_ns_ = 0;
};

}  // namespace lull::exports
