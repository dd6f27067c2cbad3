// What the catalogue keeps, as plain structs; messages of a relay are kept as they are.
// Ids are the store's own integers: a job's and a process's are unique in the database,
// all others within the job (API, stack, site) or within the process (series). Which
// column has which field is in tables.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/aggregate/live_blocks.h"
#include "daemon/aggregate/series.h"
#include "daemon/aggregate/site.h"
#include "events.pb.h"
#include "ingest.pb.h"

namespace lull::storage {

struct JobRow {
  int64_t id = 0;
  // From the last Hello, except for two things: start_ns is that of the first Hello, as
  // buckets count from it, and the GPU mode is the highest that any Hello asked for.
  lull::v1::JobInfo info;
  bool ended = false;
  lull::v1::JobEnd end;            // of one that ended
  uint64_t last_event_ns = 0;      // end of the latest event
  uint64_t touched_ns = 0;         // last commit that concerned it; see ClockRow
  uint64_t batches_set_aside = 0;  // that no collector took
  lull::v1::JobMarks marks;        // PutJob() writes those of a new job alone
  std::string run;                 // what it is a part of, JobInfo.run_id; "" = nothing
};

// What was read last, in one second of the host, of the collector's clock beside it.
struct ClockReadingRow {
  uint64_t second = 0;
  lull::v1::ClockReading reading;
};

// What the store's own clock showed when it was last read, and the clocks of the host
// then. Ages of jobs are measured with it and not with CLOCK_REALTIME, which anybody
// may set. One row.
struct ClockRow {
  uint64_t now_ns = 0;  // near the Unix time, never set back
  uint64_t realtime_ns = 0;
  uint64_t boottime_ns = 0;
  std::string boot_id;
};

// A stretch of time in which the job was armed. A job without any that is not dormant
// was armed all the time.
struct StretchRow {
  uint64_t number = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // 0: goes on
};

struct ProcessRow {
  int64_t id = 0;
  int64_t job = 0;
  // Until its ProcessInfo comes, only the key is set, and there is no rank.
  lull::v1::ProcessInfo info;
  uint64_t end_ns = 0;                 // 0: lives, as far as we know
  lull::v1::ProcessCounters counters;  // the latest; those of rings are in RingRow
  // Blame is done up to here: idle and traced time before it is in the derived ring,
  // none from it on.
  uint64_t judged_ns = 0;
  uint64_t late_operations = 0;
};

struct RingRow {
  uint32_t ring = 0;
  uint64_t end_position = 0;  // the exactly-once mark: all below is stored or lost
  uint64_t stored = 0;
  uint64_t skipped = 0;             // positions below the mark that never came
  lull::v1::RingCounters counters;  // the latest
};

struct ApiRow {
  uint32_t id = 0;
  std::string name;
  std::string family;
};

struct StackRow {
  uint32_t id = 0;
  bool native = false;
  bool truncated = false;
  std::vector<uint32_t> frames;  // ids, innermost first
};

struct FrameRow {
  uint32_t id = 0;
  aggregate::Frame frame;
};

// What a reference of a process means: the id of a stack, kernel or GPU stream.
enum class RefKind : uint8_t { kStack = 0, kKernel = 1, kGpuStream = 2 };
struct RefRow {
  RefKind kind = RefKind::kStack;
  uint32_t ref = 0;
  uint32_t id = 0;
};

// A kernel and the shape of a launch; one name comes in many shapes.
struct KernelRow {
  uint32_t id = 0;
  uint32_t name = 0;
  uint32_t grid[3] = {0, 0, 0};  // all zero: shape unknown
  uint32_t block[3] = {0, 0, 0};
  uint32_t registers_per_thread = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared_bytes = 0;
};
struct KernelNameRow {
  uint32_t id = 0;
  std::string name;
};

struct GpuStreamRow {
  uint32_t id = 0;
  DeviceId device{};
  ContextId context{};
  StreamId stream{};
};

// A device as a process sees it.
struct GpuDeviceRow {
  DeviceId device{};
  lull::v1::GpuDeviceDef def;
};

// From start_ns on, tracing was in this state.
struct TracingRow {
  uint64_t start_ns = 0;
  lull::v1::TracingState state = lull::v1::TRACING_STATE_OFF;
  lull::v1::TracingReason reason = lull::v1::TRACING_REASON_SCHEDULE;
};

// The first value that was not finite.
struct NonFiniteRow {
  uint64_t time_ns = 0;
  uint64_t value = 0;  // bits of a double
  uint32_t series = 0;
  bool step_known = false;
  uint64_t step = 0;
};

// A training step and what it was spent on.
struct StepRow {
  uint64_t number = 0;
  lull::v1::StepSource source = lull::v1::STEP_SOURCE_NONE;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  bool traced = false;                   // wholly in traced time
  std::array<uint64_t, 7> part_ns = {};  // by steps::Part; the rest is other
  uint64_t rested_ns = 0;  // of a control step: nothing is known of so much of it
};

// What was live at the end of a step: bytes by series of a whole (aggregate::TotalOf).
struct StepMemoryRow {
  uint64_t ordinal = 0;  // of the step among all that were seen, from 0
  uint64_t step = 0;     // its number
  uint64_t end_ns = 0;
  std::vector<std::pair<uint32_t, int64_t>> live;
};

struct SiteRow {
  uint32_t id = 0;
  std::string file;
  int32_t line = 0;
  std::string function;
  // For backward work, whose function is a node's name: the sites of whoever called
  // backward() and of the operator that made the node. 0: none, or not known.
  uint32_t backward_of = 0;
  uint32_t forward = 0;
};

// The source text around a line, as it was when the program ran.
struct SourceRow {
  uint32_t id = 0;
  lull::v1::SourceDef def;
};

struct SeriesRow {
  uint32_t id = 0;
  aggregate::Series series;
};

// Memory that is allocated now.
struct LiveBlockRow {
  aggregate::BlockKey key;
  aggregate::LiveBlock block;
};

}  // namespace lull::storage
