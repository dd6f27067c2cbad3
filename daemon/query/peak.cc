#include <algorithm>
#include <optional>
#include <utility>

#include "daemon/aggregate/accumulate.h"
#include "daemon/aggregate/accumulate_memory.h"
#include "daemon/base/status.h"
#include "daemon/query/memory_parts.h"

namespace lull::query {
namespace {

using aggregate::Edge;
using aggregate::kBucketNs;
using aggregate::kBucketShift;

class PeakFinder {
 public:
  PeakFinder(const View& view, const ProcessSums& sums, uint32_t whole)
      : view_(view),
        sums_(sums),
        whole_(whole),
        target_(sums.Peak(whole)),
        live_(sums.live_before[whole]) {}

  absl::StatusOr<Peak> Find() {
    const TimeRange range = view_.range;
    if (live_ >= target_) return Replay({range.since, range.since});
    const aggregate::Cover cover = aggregate::CoverRange(range.since, range.until);
    if (!cover.head.empty()) {
      LULL_ASSIGN_OR_RETURN(Peak head, Replay(cover.head));
      if (head.bytes >= target_) return head;
      LULL_ASSIGN_OR_RETURN(live_, LiveAt(cover.head.end));
    }
    for (const aggregate::BucketRun& run : cover.runs) {
      LULL_ASSIGN_OR_RETURN(std::optional<uint64_t> bucket,
                            Search(run.level, run.first, run.end));
      if (bucket) return Replay({*bucket * kBucketNs, (*bucket + 1) * kBucketNs});
    }
    return Replay(cover.tail);
  }

 private:
  // The bucket of level 0 below buckets [first, end) of `level` in which the target is
  // reached first. live_ goes along.
  absl::StatusOr<std::optional<uint64_t>> Search(uint32_t level, uint64_t first,
                                                 uint64_t end) {
    std::optional<uint64_t> found;
    LULL_RETURN_IF_ERROR(
        view_.reader->cells().ReadSeries(sums_.process.id, whole_, level, first, end,
                                         [&](uint64_t bucket, const Cell& cell) {
                                           if (found) return;
                                           if (live_ + cell.peak >= target_) {
                                             found = bucket;
                                           } else {
                                             live_ += cell.live;
                                           }
                                         }));
    if (!found || level == 0) return found;
    return Search(level - 1, *found << kBucketShift, (*found + 1) << kBucketShift);
  }

  absl::StatusOr<ProcessSums> SumsUntil(uint64_t end) {
    return LoadSums(*view_.reader, view_.job, sums_.process, {0, end});
  }
  absl::StatusOr<int64_t> LiveAt(uint64_t time) {
    LULL_ASSIGN_OR_RETURN(ProcessSums before, SumsUntil(time));
    return before.cells[whole_].live;
  }

  // Event by event, in the order in which they took effect.
  absl::StatusOr<Peak> Replay(Edge edge) {
    std::vector<Event> events;
    if (!edge.empty()) {
      LULL_RETURN_IF_ERROR(view_.reader->events().Read(
          sums_.process.id, Absolute(view_.job, edge.begin),
          Absolute(view_.job, edge.end), [&](const Event& event) {
            if (event.series < sums_.series.size() &&
                event.released_series < sums_.series.size() &&
                aggregate::ChangesLive(sums_.series[event.series].type)) {
              events.push_back(event);
            }
          }));
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return aggregate::MemoryOrderNs(a) < aggregate::MemoryOrderNs(b);
    });
    LULL_ASSIGN_OR_RETURN(ProcessSums before, SumsUntil(edge.begin));
    Peak peak;
    peak.cells = std::move(before.cells);
    peak.bytes = peak.cells[whole_].live;
    peak.time_ns = edge.begin;
    const size_t count = CountToPeak(events, peak.bytes);
    for (size_t i = 0; i < count; ++i) {
      const Event& event = events[i];
      const Series& series = sums_.series[event.series];
      if (aggregate::IsAllocation(series) && !aggregate::IsBefore(series)) {
        Cell& cell = peak.cells[event.series];
        aggregate::AddAllocation(series, MemoryView{event}.bytes(), 0, cell);
      }
      aggregate::AddMemory(
          event, [&](uint32_t id) -> Cell& { return peak.cells[id]; },
          [&](uint32_t id) -> const Series& { return sums_.series[id]; });
      peak.time_ns = aggregate::AfterStart(aggregate::MemoryOrderNs(event),
                                           view_.job.info.start_ns());
    }
    return peak;
  }

  // How many events lead to the first highest value; raises `bytes` to it.
  size_t CountToPeak(const std::vector<Event>& events, int64_t& bytes) const {
    size_t best = 0;
    int64_t live = bytes;
    for (size_t i = 0; i < events.size(); ++i) {
      aggregate::ForEachTotalChange(
          events[i], [&](uint32_t id) -> const Series& { return sums_.series[id]; },
          [&](uint64_t, uint32_t id, int64_t change) {
            live += id == whole_ ? change : 0;
          });
      if (live <= bytes) continue;
      bytes = live;
      best = i + 1;
    }
    return best;
  }

  const View& view_;
  const ProcessSums& sums_;
  const uint32_t whole_;
  const int64_t target_;
  int64_t live_;  // where the search has got to
};

}  // namespace

absl::StatusOr<Peak> FindPeak(const View& view, const ProcessSums& sums,
                              uint32_t whole) {
  return PeakFinder(view, sums, whole).Find();
}

}  // namespace lull::query
