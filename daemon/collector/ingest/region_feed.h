// What the GPUs of a process did within each of its regions: busy and idle time, by
// cause, summed into cells (EventType::kRegionTraced, kRegionIdle). Counts and times of
// regions themselves are those of their events.
//
// A region is known when it ends, and idle time when it has been judged, seconds later:
// the region waits for that. A collector that restarts goes on with what is not judged
// yet. If a region began before the events that are read again, only its count and time
// are known; the same if more than kMost regions wait.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/gpu_curve.h"
#include "daemon/base/ids.h"
#include "daemon/collector/ingest/series_table.h"

namespace lull::collector {

// Not thread-safe. Times are CLOCK_MONOTONIC.
class RegionFeed {
 public:
  explicit RegionFeed(SeriesTable& series) : series_(series) {}

  // After a restart: what ended before was told.
  void Restore(uint64_t judged_ns) { told_ns_ = judged_ns; }

  void AddScope(const Event& event);

  // As blame tells them (blame::Sink), for each device in the order of time.
  void AddIdle(DeviceId device, uint64_t start_ns, uint64_t end_ns, size_t cause) {
    devices_[device].AddIdle(start_ns, end_ns, cause);
  }
  void AddTraced(DeviceId device, uint64_t start_ns, uint64_t end_ns) {
    traced_.push_back({device, start_ns, end_ns});
  }

  // All before `judged_ns` has been told, and all idle time in what was told as traced.
  // Calls add(series, start_ns, total, amount).
  template <typename Add>
  void Advance(uint64_t judged_ns, Add&& add) {
    for (const Traced& traced : traced_) {
      devices_[traced.device].AddTraced(traced.start_ns, traced.end_ns);
    }
    traced_.clear();
    if (waiting_.empty()) return;
    std::deque<Waiting> later;
    for (const Waiting& scope : waiting_) {
      if (scope.end_ns > judged_ns) {
        later.push_back(scope);
        continue;
      }
      Tell(scope, [&](uint32_t series, uint64_t total_ns, uint64_t amount_ns) {
        add(series, scope.start_ns, total_ns, amount_ns);
      });
    }
    waiting_.swap(later);
  }

 private:
  static constexpr size_t kMost = 200'000;

  struct Traced {
    DeviceId device;
    uint64_t start_ns, end_ns;
  };
  struct Waiting {
    uint64_t start_ns, end_ns;
    uint32_t stack;
  };
  struct Cells {
    uint32_t traced = 0;
    uint32_t idle[aggregate::kGapCauses] = {};
  };

  uint32_t Series(EventType type, uint8_t cause, uint32_t stack);

  template <typename Add>
  void Tell(const Waiting& scope, Add&& add) {
    aggregate::GpuTime time;
    for (const auto& [device, curve] : devices_) {
      time += curve.Between(scope.start_ns, scope.end_ns);
    }
    if (time.traced_ns == 0) return;
    Cells& cells = cells_[scope.stack];
    uint64_t idle_ns = 0;
    for (size_t cause = 0; cause < aggregate::kGapCauses; ++cause) {
      if (time.idle_ns[cause] == 0) continue;
      idle_ns += time.idle_ns[cause];
      uint32_t& id = cells.idle[cause];
      if (id == 0) {
        id = Series(EventType::kRegionIdle, static_cast<uint8_t>(cause), scope.stack);
      }
      add(id, time.idle_ns[cause], uint64_t{0});
    }
    if (cells.traced == 0) {
      cells.traced = Series(EventType::kRegionTraced, 0, scope.stack);
    }
    add(cells.traced, time.traced_ns,
        time.traced_ns - (idle_ns < time.traced_ns ? idle_ns : time.traced_ns));
  }

  SeriesTable& series_;
  std::deque<Waiting> waiting_;
  std::vector<Traced> traced_;  // its idle time is yet to come
  uint64_t told_ns_ = 0;
  absl::flat_hash_map<DeviceId, aggregate::GpuCurve> devices_;
  absl::flat_hash_map<uint32_t, Cells> cells_;  // by the scope's stack
};

}  // namespace lull::collector
