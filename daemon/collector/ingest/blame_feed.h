// Runs one blame::Engine for the collector: events of a process go in, derived events
// and cells of submissions come out. docs/blame.md says what they mean.
//
// Everything comes out exactly once: it is committed with the batch that caused it,
// together with judged_ns(). A feed that replaces a lost one gets the stored events
// from ReplayFrom(judged_ns) on again (Restore), and does not repeat what came out
// before that.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/aggregate/event.h"
#include "daemon/blame/blame.h"
#include "daemon/collector/ingest/autograd_feed.h"
#include "daemon/collector/ingest/derived_series.h"
#include "daemon/collector/ingest/gap_samples.h"
#include "daemon/collector/ingest/gpu_tables.h"
#include "daemon/collector/ingest/judged_time.h"
#include "daemon/collector/ingest/region_feed.h"
#include "daemon/collector/ingest/series_table.h"
#include "daemon/collector/ingest/thread_regions.h"
#include "daemon/collector/ingest/tracing_marks.h"

namespace lull::collector {

// Not thread-safe.
class BlameFeed : private blame::Sink {
 public:
  BlameFeed(SeriesTable& series, GpuTables& gpu, uint64_t job_start_ns);

  void set_main_thread(ThreadId tid) { thread_regions_.set_main_thread(tid); }

  // An event of the process, whose series is known.
  void Add(const Event& event);

  // After all events of a batch: every event that was committed before `as_of_ns` has
  // come.
  void Advance(uint64_t as_of_ns);
  void Finish();  // nothing will come any more; Add and Advance do nothing from here on

  // Before the first Add after a restart: what was judged, and whether tracing was on
  // where the replay begins. Then Add all stored events that start from there on,
  // derived ones included.
  static uint64_t ReplayFrom(uint64_t judged_ns);
  void Restore(uint64_t judged_ns, bool traced);
  void Restored();  // all have been added

  // Operations that ended before it are here, as of the last Advance.
  uint64_t gpu_ns() const { return gpu_ns_; }
  // Idle and traced time before it has come out, and none from it on.
  uint64_t judged_ns() const { return judged_.judged_ns(); }
  uint64_t late_operations() const {
    return late_before_ + engine_.counters().late_operations;
  }
  void set_late_before(uint64_t late) { late_before_ = late; }

  // An operation to be added to the cell of its series, which is no event of its own.
  struct Submitted {
    uint32_t series = 0;
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;
  };
  // What came out since the last call of each. Events have their series; stretches do
  // not cross buckets.
  std::vector<Event> TakeEvents() { return std::exchange(events_, {}); }
  std::vector<Submitted> TakeSubmitted() { return std::exchange(submitted_, {}); }
  // What regions added to cells since the last call. These are no events.
  struct Summed {
    uint32_t series = 0;
    uint64_t start_ns = 0;
    aggregate::Cell sum;
  };
  std::vector<Summed> TakeSummed() { return std::exchange(summed_, {}); }

 private:
  void OnIdle(const blame::Idle& idle) override;
  void OnSync(const blame::SyncCost& cost) override;
  void OnSubmission(const blame::Submission& submission) override;
  void OnCoverage(const blame::Coverage& coverage) override;

  bool IsPlausible(const Event& event) const;
  void AddHost(blame::HostKind kind, const Event& event);
  void AddOperation(const Series& series, const Event& event);
  void AddTracing(const Event& event);
  void AddTold(const Series& series, const Event& event);
  void TellRegions();
  void Tell(EventType type, Event event, DeviceId device);
  void AddToGaps(const Event& idle);
  void TellSamples();
  void AddScope(const Series& series, const Event& event);

  // The engine's clock: ours, shifted so that its whole seconds are bucket borders.
  uint64_t ToEngine(uint64_t time_ns) const;
  uint64_t FromEngine(uint64_t time_ns) const { return time_ns + shift_ns_; }

  SeriesTable& series_;
  GpuTables& gpu_;
  const uint64_t job_start_ns_;
  const uint64_t shift_ns_;
  blame::Engine engine_;
  bool finished_ = false;

  TracingMarks marks_;
  uint64_t gpu_ns_ = 0;
  JudgedTime judged_;
  uint64_t late_before_ = 0;
  GapSamples samples_;

  DerivedSeries derived_;
  std::vector<Event> events_;
  std::vector<Submitted> submitted_;
  RegionFeed regions_;
  ThreadRegions thread_regions_;
  AutogradFeed autograd_;
  std::vector<Summed> summed_;
};

}  // namespace lull::collector
