#include "daemon/export/memory_levels.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "daemon/aggregate/accumulate_memory.h"

namespace lull::exports {
namespace {

using aggregate::Allocator;
using aggregate::EventType;

constexpr std::greater<> kFirstOnTop;

std::optional<Measure> MeasureOf(const aggregate::Series& total) {
  if (total.type == EventType::kTorchReserved) return Measure::kReserved;
  switch (aggregate::AllocatorOf(total)) {
    case Allocator::kTorchCuda:
      return Measure::kLive;
    case Allocator::kTorchCpu:
      return Measure::kHostLive;
    case Allocator::kCuda:
      return Measure::kAllocated;
    case Allocator::kPinned:
      return Measure::kPinned;
    case Allocator::kTorchOther:
      break;
  }
  return std::nullopt;
}

}  // namespace

void MemoryLevels::Add(const aggregate::Event& event, Tell tell) {
  const auto series_of = [this](uint32_t id) -> const aggregate::Series& {
    static const aggregate::Series kNone;
    return id < series_.size() ? series_[id] : kNone;
  };
  aggregate::ForEachTotalChange(
      event, series_of, [this](uint64_t time_ns, uint32_t total, int64_t bytes) {
        if (bytes == 0 || total == 0 || total >= series_.size()) return;
        newest_ns_ = std::max(newest_ns_, time_ns);
        held_.push_back({time_ns, taken_++, bytes, total});
        std::push_heap(held_.begin(), held_.end(), kFirstOnTop);
      });
  while (!held_.empty() &&
         (held_.size() > kMostHeld || held_.front().time_ns + kHold < newest_ns_)) {
    Apply(tell);
  }
}

// Changes of one moment are one: what is reserved is told as what was before, taken
// away, and what is now.
void MemoryLevels::Apply(Tell tell) {
  const Change change = held_.front();
  std::pop_heap(held_.begin(), held_.end(), kFirstOnTop);
  held_.pop_back();
  const auto tell_level = [&](uint32_t total, uint64_t time_ns, int64_t level) {
    const aggregate::Series& series = series_[total];
    const auto measure = MeasureOf(series);
    if (measure.has_value()) {
      const bool of_device = IsOfDevice(*measure);
      tell(*measure, of_device ? Number(aggregate::DeviceOf(series)) : 0, time_ns,
           level);
    }
  };
  if (!begun_ && change.time_ns >= since_ns_) {
    begun_ = true;
    for (const auto& [total, level] : levels_) {
      if (since_ns_ != 0) tell_level(total, since_ns_, level);
    }
  }
  int64_t& level = levels_[change.total];
  level += change.bytes;
  const bool more = !held_.empty() && held_.front().time_ns == change.time_ns &&
                    held_.front().total == change.total;
  if (begun_ && !more) tell_level(change.total, change.time_ns, level);
}

void MemoryLevels::Finish(Tell tell) {
  while (!held_.empty()) Apply(tell);
  if (begun_ || since_ns_ == 0) return;
  // Nothing changed in the range.
  for (const auto& [total, level] : levels_) {
    const auto measure = MeasureOf(series_[total]);
    if (!measure.has_value()) continue;
    tell(*measure,
         IsOfDevice(*measure) ? Number(aggregate::DeviceOf(series_[total])) : 0,
         since_ns_, level);
  }
}

}  // namespace lull::exports
