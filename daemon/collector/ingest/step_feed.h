// Runs one steps::StepBook for the collector: events of a process go in, rows of the
// store come out. Where the program marks no steps, the period of its CUDA calls does.
//
// A step that was in the middle when the collector ended is lost; all others are told
// once: rows have the number of their step as key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/event.h"
#include "daemon/collector/ingest/gpu_tables.h"
#include "daemon/collector/ingest/series_table.h"
#include "daemon/steps/launch_period.h"
#include "daemon/steps/step_book.h"
#include "daemon/storage/rows.h"

namespace lull::collector {

// Not thread-safe.
class StepFeed {
 public:
  StepFeed(const SeriesTable& series, const GpuTables& gpu)
      : series_(series), gpu_(gpu) {}

  // After a restart: the newest step that is in the store already.
  void Restore(const storage::StepRow& last);

  // The process has slept until then: nothing that began before is a step.
  void BeginAt(uint64_t time_ns) { told_until_ns_ = std::max(told_until_ns_, time_ns); }

  // An event of the process, whose series is known; those of a ring in the order of
  // their positions. The kernel may give a thread's number to another thread: where
  // the events of the two get mixed, those that come too late mark no steps.
  void Add(const Event& event);

  // After all events of a batch: those of the host that were committed before
  // `as_of_ns` have come, and operations that ended before `gpu_ns`.
  void Advance(uint64_t as_of_ns, uint64_t gpu_ns);

  std::vector<storage::StepRow> TakeSteps() { return std::exchange(rows_, {}); }

 private:
  static constexpr size_t kMostThreads = 8;  // that are looked at for a period

  void AddMarked(const Event& event);
  void AddCall(const Event& event, uint64_t key);
  void AddPart(steps::Part part, const Event& event) {
    if (source_ != v1::STEP_SOURCE_NONE) {
      book_.Add(part, event.start_ns, event.start_ns + event.duration_ns);
    }
  }
  void AddStep(uint64_t number, uint64_t start_ns, uint64_t end_ns, uint64_t rested_ns);

  const SeriesTable& series_;
  const GpuTables& gpu_;
  steps::StepBook book_;
  v1::StepSource source_ = v1::STEP_SOURCE_NONE;
  uint32_t tid_ = 0;  // the thread that trains; 0: not known yet
  uint64_t next_number_ = 1;
  uint64_t told_until_ns_ = 0;  // by an earlier feed, or slept
  struct Calls {
    steps::LaunchPeriod period;
    uint64_t last_ns = 0;  // when the latest one began
  };
  absl::flat_hash_map<uint32_t, Calls> calls_;  // by thread
  std::vector<steps::Step> done_;
  std::vector<storage::StepRow> rows_;
};

}  // namespace lull::collector
