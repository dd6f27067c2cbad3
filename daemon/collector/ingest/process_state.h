// What the collector has in memory about one process of a job that reports now.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "daemon/aggregate/live_blocks.h"
#include "daemon/aggregate/malloc_retries.h"
#include "daemon/aggregate/step_memory.h"
#include "daemon/collector/ingest/blame_feed.h"
#include "daemon/collector/ingest/cell_cache.h"
#include "daemon/collector/ingest/landmarks.h"
#include "daemon/collector/ingest/series_table.h"
#include "daemon/collector/ingest/step_feed.h"
#include "daemon/storage/store.h"
#include "events.pb.h"

namespace lull::collector {

// Not thread-safe. Apply* change memory alone, Flush puts the changes into the
// store. After a failed Flush or commit: throw it away and load it again.
class ProcessState {
 public:
  // `blame`: the job traces its GPUs.
  ProcessState(storage::ProcessRow row, JobTables& tables, uint64_t job_start_ns,
               bool blame);

  // The job traces its GPUs from now on, if it did not before.
  void StartBlame();

  // The job records again from `start_ns` on.
  void ApplyStretch(uint64_t start_ns);

  // Reads everything that the store knows about this process.
  absl::Status Load(storage::StoreReader& reader);

  void ApplyInfo(const v1::ProcessInfo& info);
  void ApplyRef(storage::RefKind kind, uint32_t ref, uint32_t id) {
    series_.Define(kind, ref, id);
  }
  void ApplyDevice(const v1::GpuDeviceDef& device);
  // After all events of their batch: idle time that they complete is judged.
  void ApplyCounters(const v1::ProcessCounters& counters);
  void ApplyEnd(uint64_t end_ns);
  // The job is over: what cannot be judged yet never will be.
  void ApplyJobEnd();

  // Before ApplyEvents, for all rings of a batch: when tracing began and ended.
  void ApplyTracing(uint32_t ring, const v1::EventColumns& events);

  // Takes the events of one ring that lie beyond its mark, and moves the mark. A gap
  // between the mark and the first event is what the relay had to drop; it is
  // counted. The columns must be valid (ValidateBatch).
  void ApplyEvents(uint32_t ring, const v1::EventColumns& events);
  // After the last ApplyEvents of a batch: the memory events of all its rings, in
  // the order of time, and what its events say of time that was judged before.
  void ApplyMemory();

  // See JobState.
  void PackFullRuns(storage::BlockEncoder& encoder);

  uint64_t last_event_ns() const { return last_event_ns_; }
  uint64_t events_stored() const { return events_stored_; }  // since the load

  absl::Status Flush(storage::StoreWriter& writer, int64_t job);

 private:
  struct Run {
    uint64_t first_position = 0;
    std::vector<Event> events;
    storage::PackedBlock packed;  // in their place, once they are as many as may be
  };
  struct Ring {
    storage::RingRow row;
    bool dirty = false;
    std::deque<Run> runs;  // since the last flush
  };
  struct MemoryEvent {
    uint64_t order_ns;
    Run* run;
    size_t index;
  };

  uint8_t VariantOf(EventType type, const Event& event) const;
  void TakeDerived();
  void StoreDerived(const Event& event);
  void AddLive(const Event& event);
  absl::Status Replay(storage::StoreReader& reader);
  absl::Status LoadStepMemory(storage::StoreReader& reader);
  absl::Status FlushStepMemory(storage::StoreWriter& writer);
  using Forgets = aggregate::LiveBlocks::Forgets;
  // Those that are older: while nothing was recorded they may have been freed.
  void ForgetBlocks(uint64_t before_ns, Forgets what);
  void AddRetry(const Event& event);
  Ring& RingOf(uint32_t ring);
  Run& RunAt(Ring& ring, uint64_t position, size_t expected = 1);
  aggregate::Cell& CellOf(uint64_t time_ns, uint32_t series);

  storage::ProcessRow row_;
  bool dirty_ = true;
  bool forget_blocks_ = false;
  SeriesTable series_;
  JobTables& tables_;
  uint64_t job_start_ns_;
  uint64_t last_event_ns_ = 0;
  uint64_t events_stored_ = 0;
  absl::flat_hash_map<uint32_t, std::unique_ptr<Ring>> rings_;
  std::unique_ptr<BlameFeed> blame_;  // none: nothing to judge
  StepFeed steps_;
  Landmarks landmarks_;
  std::vector<storage::GpuDeviceRow> new_devices_;
  aggregate::LiveBlocks blocks_;
  aggregate::StepMemory step_memory_;
  uint64_t stored_stride_ = 1;  // of the samples of step_memory_ in the store
  aggregate::MallocRetries retries_;
  CellChanges changes_;
  CellCache cells_;
  std::vector<MemoryEvent> memory_;
  std::vector<uint64_t> rested_until_ns_;  // in control steps, of this batch
  std::vector<Run*> full_runs_;            // not packed yet
};

}  // namespace lull::collector
