// What many jobs cost together: the answer of `lull fleet` from rows of tables.h.
// clickhouse_fleet.h has the same from a server's tables, in SQL.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "daemon/fleet/tables.h"
#include "fleet.pb.h"

namespace lull::fleet {

inline constexpr uint32_t kMostFleetRows = 10'000;

// Rows of each list that are asked for.
inline uint32_t LimitOf(const v1::FleetRequest& request) {
  return request.limit() == 0 ? kMostFleetRows
                              : std::min(request.limit(), kMostFleetRows);
}

// Jobs that the request is about.
bool IsAskedFor(const v1::FleetRequest& request, const JobRow& job);

// What 64 bits of nanoseconds do not hold.
absl::Status TooMuchTime();
inline constexpr uint64_t kMostSeconds = UINT64_MAX / 1'000'000'000 - 1;

inline double MsOfUs(uint64_t us) { return static_cast<double>(us) / 1e3; }

inline bool IsByTime(v1::FleetGroup by) {
  return by == v1::FLEET_GROUP_DAY || by == v1::FLEET_GROUP_WEEK;
}
// Days since 1970 that groups by time can have: the 5th of January 1970, a Monday, and
// the 31st of December 2105.
inline constexpr uint64_t kFirstDay = 4, kLastDay = 49'672;
// "2026-11-23".
std::string DayText(uint64_t day);

class Summary {
 public:
  // Each job once.
  void Add(const Editions& editions);

  // Rows with most time first; of the same time by their names.
  // OUT_OF_RANGE: TooMuchTime().
  absl::Status Fill(const v1::FleetRequest& request, v1::FleetReply* reply) const;

 private:
  struct Line {
    std::string cause, file;
    int32_t line = 0;
    std::string function, api;
    auto operator<=>(const Line&) const = default;
  };
  struct Late {
    std::string host, cause, file;
    int32_t line = 0;
    std::string function;
    auto operator<=>(const Late&) const = default;
  };
  struct Sums {
    uint64_t jobs = 0;
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    uint64_t estimated_us = 0;
  };
  struct Group {
    std::string key;
    uint64_t jobs = 0;
    uint64_t gpu_time_ms = 0;
    uint64_t traced_ns = 0;
    uint64_t busy_ns = 0;
    uint64_t idle_ns = 0;
    uint64_t estimated_us = 0;
  };
  struct LateSums {
    std::set<std::string> jobs;
    uint64_t cost_ns = 0;
  };
  struct Job {
    JobRow row;
    std::string cause;  // of most idle time
    uint64_t cause_ns = 0;
    uint64_t estimated_us = 0;
  };

  void FillLines(uint32_t limit, v1::FleetReply* reply) const;
  void FillGroups(v1::FleetGroup by, uint32_t limit, v1::FleetReply* reply) const;
  void FillJobs(uint32_t limit, v1::FleetReply* reply) const;
  void FillLate(uint32_t limit, v1::FleetReply* reply) const;

  v1::FleetTotals totals_;
  uint64_t estimated_us_ = 0;
  // Of traced and blocked time and of what late ranks cost, which no other sum exceeds.
  uint64_t traced_s_ = 0, blocked_s_ = 0, late_s_ = 0;
  std::set<std::string> hosts_, collectors_;
  std::map<std::string, Sums> causes_;
  std::map<Line, Sums> lines_;
  std::map<Late, LateSums> late_;
  std::map<std::string, Job> jobs_;  // by id
};

}  // namespace lull::fleet
