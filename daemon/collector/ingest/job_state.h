// What the collector has in memory about one job that reports now.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/collector/ingest/job_tables.h"
#include "daemon/collector/ingest/process_state.h"
#include "daemon/storage/store.h"
#include "ingest.pb.h"

namespace lull::collector {

// Not thread-safe. Same life as ProcessState: Apply changes memory, Flush writes,
// and after an error of Flush or of the commit the object is of no more use.
class JobState {
 public:
  // The job as the store knows it, or a new one. UNAVAILABLE while retention deletes
  // it.
  static absl::StatusOr<std::unique_ptr<JobState>> Load(storage::StoreReader& reader,
                                                        const v1::Hello& hello);

  void Apply(const v1::Hello& hello);

  // The batch must be valid (ValidateBatch). Returns the runs of events that were left
  // out because they name an API that neither a Hello nor a batch has named.
  std::vector<v1::RejectedRun> Apply(const v1::Batch& batch);

  // After a batch: events that nothing changes any more take less memory until Flush.
  void PackFullRuns(storage::BlockEncoder& encoder);

  // Must be valid (ValidateClock).
  void Apply(const v1::ClockReading& reading);

  // `now_ns`: by the store's clock (storage::ClockRow).
  absl::Status Flush(storage::StoreWriter& writer, uint64_t now_ns);

  int64_t id() const { return row_.id; }
  bool ended() const { return row_.ended; }
  uint64_t events_stored() const { return events_stored_; }  // since the load

 private:
  JobState() = default;
  ProcessState& ProcessOf(uint64_t key);
  void ApplyStretch(const v1::ArmedStretch& told);
  void NoteRun(const v1::ProcessInfo& info);
  void ApplyStacks(const v1::Batch::Stacks& stacks);
  void ApplyGpu(const v1::Batch::Gpu& gpu);
  // nullptr, or the first API of the run that has no name.
  const uint32_t* UnnamedApi(const v1::RingBatch& run) const;
  bool Traces() const {
    return row_.info.gpu_mode() != v1::GPU_MODE_HOST && !row_.ended;
  }

  storage::JobRow row_;
  std::vector<storage::StretchRow> new_stretches_;
  std::vector<storage::ClockReadingRow> new_readings_;
  std::unique_ptr<JobTables> tables_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<ProcessState>> processes_;
  absl::flat_hash_set<ProcessState*> touched_;  // by the events of the latest batch
  uint64_t events_stored_ = 0;
};

}  // namespace lull::collector
