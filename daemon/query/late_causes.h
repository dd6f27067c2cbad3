// Numbers for lines and causes that are the same for all ranks of a job, whichever part
// of it they are of (daemon/ranks/ranks.h deals in numbers alone).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/query/names.h"
#include "daemon/ranks/host_clock.h"
#include "daemon/ranks/ranks.h"
#include "daemon/storage/rows.h"
#include "query.pb.h"

namespace lull::query {

// What one relay told; each has a clock, and numbers of its own for sites and APIs.
struct RankPart {
  storage::JobRow job;
  Names* names = nullptr;
  const ranks::HostClock* clock = nullptr;  // nullptr: all have one
  std::map<uint32_t, uint32_t> lines;       // by site: the number that all parts use

  uint64_t Common(uint64_t host_ns) const {
    return clock == nullptr ? host_ns : clock->ToCommon(host_ns);
  }
  ranks::Stretch Common(uint64_t start_ns, uint64_t end_ns, uint32_t what) const {
    return {Common(start_ns), Common(end_ns), what};
  }
};

class LateCauses {
 public:
  // 0 is none, as it is of sites.
  uint32_t LineOf(RankPart& part, uint32_t site);
  // Of a cause at a line; never 0.
  uint32_t Number(const std::string& cause, uint32_t line);

  // Cause and site.
  void Fill(uint32_t number, v1::LateCause* out) const;

 private:
  std::map<std::tuple<std::string, int32_t, std::string>, uint32_t> lines_;
  std::vector<v1::Site> sites_;  // by number - 1
  std::map<std::pair<std::string, uint32_t>, uint32_t> numbers_;
  std::vector<std::pair<std::string, uint32_t>>
      causes_;  // by number - 1; with the line
};

}  // namespace lull::query
