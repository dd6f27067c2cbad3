// Ranks of a job, and idle time by cause; what tables are: tables.h.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/fleet/job_row.h"

namespace lull::fleet {

struct RankRow : RowKey {
  static constexpr const char* kName = "lull_ranks";
  static constexpr const char* kKey = "rank";

  int32_t rank = -1;  // -1: of processes that have none
  std::string host;
  uint32_t processes = 0;
  uint64_t recorded_ns = 0;  // life of its processes, added up, without control steps
  // Beside it, in steps that were not recorded to hold the overhead budget. `steps` and
  // `steps_ns` are of all steps, all else is of recorded ones.
  uint64_t rested_ns = 0;
  uint64_t steps = 0;
  uint64_t steps_ns = 0;  // of those that the program marks
  uint64_t launches = 0;
  uint64_t traced_ns = 0;
  uint64_t busy_ns = 0;
  uint64_t kernel_ns = 0;
  uint64_t idle_ns = 0;  // the sum of its rows in lull_rank_causes
  uint64_t sync_blocked_ns = 0;
  uint64_t data_wait_ns = 0;
  uint64_t gc_ns = 0;
  uint64_t own_ns = 0;

  template <typename Visitor>
  static void Columns(Visitor&& column) {
    KeyColumns(column);
    column("rank", &RankRow::rank);
    column("host", &RankRow::host);
    column("processes", &RankRow::processes);
    column("recorded_ns", &RankRow::recorded_ns);
    column("rested_ns", &RankRow::rested_ns);
    column("steps", &RankRow::steps);
    column("steps_ns", &RankRow::steps_ns);
    column("launches", &RankRow::launches);
    column("traced_ns", &RankRow::traced_ns);
    column("busy_ns", &RankRow::busy_ns);
    column("kernel_ns", &RankRow::kernel_ns);
    column("idle_ns", &RankRow::idle_ns);
    column("sync_blocked_ns", &RankRow::sync_blocked_ns);
    column("data_wait_ns", &RankRow::data_wait_ns);
    column("gc_ns", &RankRow::gc_ns);
    column("own_ns", &RankRow::own_ns);
  }
};

// Idle time of the job by cause; causes are called as JSON calls them.
struct CauseRow : RowKey {
  static constexpr const char* kName = "lull_causes";
  static constexpr const char* kKey = "cause";

  std::string cause;
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;

  template <typename Visitor>
  static void Columns(Visitor&& column) {
    KeyColumns(column);
    column("cause", &CauseRow::cause);
    column("count", &CauseRow::count);
    column("total_ns", &CauseRow::total_ns);
    column("max_ns", &CauseRow::max_ns);
  }
};

struct RankCauseRow : RowKey {
  static constexpr const char* kName = "lull_rank_causes";
  static constexpr const char* kKey = "rank, cause";

  int32_t rank = -1;
  std::string cause;
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;

  template <typename Visitor>
  static void Columns(Visitor&& column) {
    KeyColumns(column);
    column("rank", &RankCauseRow::rank);
    column("cause", &RankCauseRow::cause);
    column("count", &RankCauseRow::count);
    column("total_ns", &RankCauseRow::total_ns);
    column("max_ns", &RankCauseRow::max_ns);
  }
};

}  // namespace lull::fleet
