// What lines of a job cost; what tables are: tables.h.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/fleet/job_row.h"

namespace lull::fleet {

// Idle time of the job by cause and the line that is to blame. Lines beyond the first
// kMostLines are one row of their cause, without a line.
struct LineRow : RowKey {
  static constexpr const char* kName = "lull_lines";
  static constexpr const char* kKey = "cause, file, line, function, api";

  std::string cause;
  std::string file;
  int32_t line = 0;
  std::string function;
  std::string api;  // "cudaStreamSynchronize"; "" where there is none
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;

  template <typename Visitor>
  static void Columns(Visitor&& column) {
    KeyColumns(column);
    column("cause", &LineRow::cause);
    column("file", &LineRow::file);
    column("line", &LineRow::line);
    column("function", &LineRow::function);
    column("api", &LineRow::api);
    column("count", &LineRow::count);
    column("total_ns", &LineRow::total_ns);
    column("max_ns", &LineRow::max_ns);
  }
};

// Calls that blocked on the GPU, by line; beyond the first kMostLines as above.
struct SyncRow : RowKey {
  static constexpr const char* kName = "lull_syncs";
  static constexpr const char* kKey = "api, file, line, function";

  std::string api;
  std::string file;
  int32_t line = 0;
  std::string function;
  uint64_t calls = 0;
  uint64_t blocked_ns = 0;
  uint64_t wasted_ns = 0;  // idle time of the GPU that it caused
  uint64_t max_ns = 0;

  template <typename Visitor>
  static void Columns(Visitor&& column) {
    KeyColumns(column);
    column("api", &SyncRow::api);
    column("file", &SyncRow::file);
    column("line", &SyncRow::line);
    column("function", &SyncRow::function);
    column("calls", &SyncRow::calls);
    column("blocked_ns", &SyncRow::blocked_ns);
    column("wasted_ns", &SyncRow::wasted_ns);
    column("max_ns", &SyncRow::max_ns);
  }
};

// Why ranks of a run were the last to come to collectives (docs/ranks.md). Rows of a
// run on several hosts stand with its first job.
struct LateRow : RowKey {
  static constexpr const char* kName = "lull_late";
  static constexpr const char* kKey = "rank, cause, file, line, function";

  int32_t rank = -1;
  std::string host;
  std::string cause;
  std::string file;
  int32_t line = 0;
  std::string function;
  uint64_t steps = 0;
  uint64_t total_ns = 0;
  uint64_t cost_ns = 0;  // what the other ranks waited, added up

  template <typename Visitor>
  static void Columns(Visitor&& column) {
    KeyColumns(column);
    column("rank", &LateRow::rank);
    column("host", &LateRow::host);
    column("cause", &LateRow::cause);
    column("file", &LateRow::file);
    column("line", &LateRow::line);
    column("function", &LateRow::function);
    column("steps", &LateRow::steps);
    column("total_ns", &LateRow::total_ns);
    column("cost_ns", &LateRow::cost_ns);
  }
};

}  // namespace lull::fleet
