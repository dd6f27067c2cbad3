// What the store keeps, as plain structs. Ids are the store's own integers: a job's
// and a process's are unique in the database, all others within the job (API, stack,
// site) or within the process (series).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/aggregate/series.h"
#include "daemon/aggregate/site.h"

namespace lull::storage {

struct JobRow {
  int64_t id = 0;
  std::string uuid;  // 32 hex digits, chosen by the relay
  std::string name;
  std::string command;
  std::string host;
  std::string user;
  std::string lull_version;
  uint64_t start_ns = 0;
  uint64_t start_realtime_ns = 0;
  double overhead_budget_percent = 0;
  bool ended = false;
  bool exit_status_known = false;
  int32_t exit_status = 0;
  uint64_t end_ns = 0;
  uint64_t relay_cpu_ns = 0;
  uint64_t last_event_ns = 0;        // end of the latest event
  uint64_t touched_realtime_ns = 0;  // last commit that concerned it
};

struct ProcessRow {
  int64_t id = 0;
  int64_t job = 0;
  uint64_t key = 0;
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // 0: lives, as far as we know
  std::string command;
  std::string executable;
  std::string python_version;
  int32_t rank = -1;
  int32_t local_rank = -1;
  // Latest ProcessCounters.
  uint64_t lost_no_ring = 0;
  uint64_t stacks_rejected = 0;
  uint64_t reentered = 0;
  uint64_t gpu_calls = 0;
  uint64_t torch_allocations = 0;
  uint32_t native_stacks = 0;
  uint32_t gc_hook = 0;
  uint32_t thinning = 0;
  bool corrupt = false;
  uint64_t as_of_ns = 0;
};

struct RingRow {
  uint32_t ring = 0;
  uint64_t end_position = 0;  // the exactly-once mark: all below is stored or lost
  uint64_t stored = 0;
  uint64_t skipped = 0;  // positions below the mark that never came
  uint64_t committed = 0;
  uint64_t lost_full = 0;
  uint64_t lost_relay = 0;
  uint64_t self_ns = 0;
  uint64_t short_waits = 0;
  uint64_t short_waits_ns = 0;
  uint64_t thinned_launches = 0;
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

struct StackRefRow {
  uint32_t ref = 0;  // of the process
  uint32_t stack = 0;
};

struct SiteRow {
  uint32_t id = 0;
  std::string file;
  int32_t line = 0;
  std::string function;
};

struct SeriesRow {
  uint32_t id = 0;
  aggregate::Series series;
};

}  // namespace lull::storage
