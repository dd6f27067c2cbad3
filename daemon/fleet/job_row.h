// A job, as ClickHouse gets to know of it; what tables are: tables.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fleet/row_binary.h"

namespace lull::fleet {

// On which a time of CLOCK_REALTIME is.
inline Day DayOf(uint64_t unix_ns) {
  constexpr uint64_t kDayNs = 86'400ULL * 1'000'000'000;
  return {static_cast<uint16_t>(std::min<uint64_t>(unix_ns / kDayNs, UINT16_MAX))};
}

// What every row begins with.
struct RowKey {
  Day day;               // in which the job began: the partition
  std::string job;       // id, 32 hexadecimal digits
  uint64_t slot = 0;     // where its rows are, see tables.h
  uint64_t version = 0;  // of the edition; grows with each

  template <typename Visitor>
  static void KeyColumns(Visitor& column) {
    column("day", &RowKey::day);
    column("job", &RowKey::job);
    column("slot", &RowKey::slot);
    column("version", &RowKey::version);
  }
};

// A table: kName of the view, kKey what tells rows of an edition apart.
struct JobRow : RowKey {
  static constexpr const char* kName = "lull_jobs";
  static constexpr const char* kKey = "";

  std::string run;     // the first job of its run that this collector has; or itself
  std::string run_id;  // what the launcher calls the run; "" = not known
  uint32_t parts = 1;  // jobs of the run that this collector has
  std::string name;
  std::string host;
  std::string user;
  // Where the lulld is that has its events: HOST:PORT, or the host alone where others
  // do not reach it.
  std::string collector;
  std::vector<std::string> tags;
  uint64_t start_unix_ns = 0;
  uint64_t duration_ns = 0;  // until its end or its last event
  uint8_t live = 0;          // its relay reports
  uint8_t ended = 0;         // its end was seen
  std::optional<int32_t> exit_status;
  uint32_t ranks = 0;
  uint32_t ranks_left_out = 0;  // of lull_ranks and lull_rank_causes
  uint32_t processes = 0;
  uint64_t steps = 0;         // added up over ranks
  uint8_t steps_sampled = 0;  // not all are recorded: see rested_ns of lull_ranks
  uint64_t launches = 0;
  // How long processes had GPUs: their recorded life since anything was first traced,
  // times the devices that were.
  uint64_t gpu_ns = 0;
  uint64_t traced_ns = 0;  // the part of it of which is known what ran
  uint64_t busy_ns = 0;
  uint64_t kernel_ns = 0;
  uint64_t idle_ns = 0;  // traced - busy; the sum of lull_causes, and of lull_lines
  uint64_t explained_ns = 0;  // of idle_ns
  uint64_t sync_blocked_ns = 0;
  uint64_t events_stored = 0;
  uint64_t events_lost = 0;
  uint64_t own_ns = 0;  // lull's own time inside the processes
  // lull_late tells of this time, after the start of the job; 0, 0: of none.
  uint64_t late_from_ns = 0;
  uint64_t late_until_ns = 0;
  uint64_t stored_ns = 0;  // what the collector had last of it, by its store's clock
  uint32_t state = 0;      // changes with what else would make a new edition

  template <typename Visitor>
  static void Columns(Visitor&& column) {
    KeyColumns(column);
    column("run", &JobRow::run);
    column("run_id", &JobRow::run_id);
    column("parts", &JobRow::parts);
    column("name", &JobRow::name);
    column("host", &JobRow::host);
    column("user", &JobRow::user);
    column("collector", &JobRow::collector);
    column("tags", &JobRow::tags);
    column("start_unix_ns", &JobRow::start_unix_ns);
    column("duration_ns", &JobRow::duration_ns);
    column("live", &JobRow::live);
    column("ended", &JobRow::ended);
    column("exit_status", &JobRow::exit_status);
    column("ranks", &JobRow::ranks);
    column("ranks_left_out", &JobRow::ranks_left_out);
    column("processes", &JobRow::processes);
    column("steps", &JobRow::steps);
    column("steps_sampled", &JobRow::steps_sampled);
    column("launches", &JobRow::launches);
    column("gpu_ns", &JobRow::gpu_ns);
    column("traced_ns", &JobRow::traced_ns);
    column("busy_ns", &JobRow::busy_ns);
    column("kernel_ns", &JobRow::kernel_ns);
    column("idle_ns", &JobRow::idle_ns);
    column("explained_ns", &JobRow::explained_ns);
    column("sync_blocked_ns", &JobRow::sync_blocked_ns);
    column("events_stored", &JobRow::events_stored);
    column("events_lost", &JobRow::events_lost);
    column("own_ns", &JobRow::own_ns);
    column("late_from_ns", &JobRow::late_from_ns);
    column("late_until_ns", &JobRow::late_until_ns);
    column("stored_ns", &JobRow::stored_ns);
    column("state", &JobRow::state);
  }
};

// How much more GPU time a job had than was traced of it: the factor of `estimated_ms`
// in fleet.proto.
inline double WeightOf(const JobRow& job) {
  if (job.traced_ns == 0) return 1;
  return std::max(1.0,
                  static_cast<double>(job.gpu_ns) / static_cast<double>(job.traced_ns));
}

}  // namespace lull::fleet
