// The series of what blame concludes: idle stretches, coverage, costs of syncs, samples
// in gaps, submissions and regions. Each has the site of what it is charged to.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/event.h"
#include "daemon/blame/blame.h"
#include "daemon/collector/ingest/gpu_tables.h"
#include "daemon/collector/ingest/series_table.h"
#include "daemon/collector/ingest/thread_regions.h"

namespace lull::collector {

// Where the process's table of series is full, they have no sites. Not thread-safe.
class DerivedSeries {
 public:
  DerivedSeries(SeriesTable& series, GpuTables& gpu) : series_(series), gpu_(gpu) {}

  uint32_t OfIdle(const blame::Idle& idle);
  uint32_t OfCoverage(DeviceId device);
  uint32_t OfSyncCost(uint32_t sync);                 // series of the sync
  uint32_t OfSample(uint32_t idle, uint32_t sample);  // series of both
  uint32_t OfSubmission(const blame::Submission& submission);
  uint32_t OfRegion(const ThreadRegions::Found& found);  // 0: no room

 private:
  struct Key {
    EventType type;
    DeviceId device;
    uint32_t first, second, third;
    blame::Cause cause = blame::Cause::kUnknown;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.type, k.device, k.first, k.second, k.third,
                        k.cause);
    }
  };

  uint32_t CulpritOf(const blame::Idle& idle) const;

  SeriesTable& series_;
  GpuTables& gpu_;
  absl::flat_hash_map<Key, uint32_t> known_;
};

}  // namespace lull::collector
