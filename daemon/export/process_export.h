// One process of a job, event by event, into the words of a trace. Holds no more than
// what has to wait: hooked events for their call (call_lines.h), the last call of each
// thread, changes of memory (memory_levels.h).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/aggregate/event.h"
#include "daemon/export/call_lines.h"
#include "daemon/export/labels.h"
#include "daemon/export/memory_levels.h"
#include "daemon/export/trace_writer.h"

namespace lull::exports {

class ProcessExport {
 public:
  // `since_ns`: what begins before is taken for its memory alone. All must outlive
  // this.
  ProcessExport(Labels& labels, const std::vector<aggregate::Series>& series,
                uint64_t job_start_ns, uint64_t since_ns, TraceWriter& writer)
      : labels_(labels),
        job_start_ns_(job_start_ns),
        since_ns_(since_ns),
        writer_(writer),
        levels_(series, since_ns) {}

  void Take(const aggregate::Event& event);
  void Finish();

 private:
  using Call = CallLines::Held;

  uint64_t Time(uint64_t ns) const;
  Slice SliceOf(const aggregate::Event& event) const;
  void TakeSlice(const aggregate::Event& event);
  void TakeIdle(const aggregate::Event& event);
  void WriteIdle();
  void TakeCall(const aggregate::Event& event);
  void TakeMemory(const aggregate::Event& event);
  void TakeCoverage(const aggregate::Event& event);
  void TakeLevels(const aggregate::Event& event);
  void WriteCalls();
  void Write(const std::vector<Call>& hooks);
  void Write(const Call& call);

  Labels& labels_;
  const uint64_t job_start_ns_;
  const uint64_t since_ns_;
  TraceWriter& writer_;
  std::map<uint32_t, Call> calls_;  // the last one of each thread
  CallLines lines_;
  MemoryLevels levels_;
  // By device, the latest stretch of idle time, which may go on: they are cut where a
  // second of the job ends.
  struct IdleStretch {
    uint32_t series = 0;
    Slice slice;
  };
  std::map<uint32_t, IdleStretch> idle_;
};

}  // namespace lull::exports
