// A rank by what its device did, as the rules for late ranks want it (docs/ranks.md).
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "daemon/aggregate/series.h"
#include "daemon/query/device_rank.h"
#include "daemon/query/late_causes.h"
#include "daemon/ranks/by_ends.h"
#include "daemon/ranks/ranks.h"

namespace lull::query {

// CUPTI's clock against the host's, at most (preload/cupti/clock.h,
// docs/gpu_results.md).
inline constexpr uint64_t kDeviceTimeErrorNs = 5'000;

class DeviceWaits {
 public:
  explicit DeviceWaits(LateCauses& causes) : causes_(causes) {}

  // `series` by id. Steps and looks are the caller's.
  void Fill(const DeviceRank& device, const std::vector<aggregate::Series>& series,
            RankPart& part, ranks::Rank* out);
  // The same of one of `members` ranks whose kernels of communication are the same in
  // the same order (daemon/ranks/by_ends.h); `functions`: what each of them does. All
  // times are within `spread_ns`.
  void FillByOrder(const DeviceRank& device,
                   const std::vector<aggregate::Series>& series,
                   const std::vector<ranks::Ended>& kernels, uint32_t members,
                   uint64_t spread_ns, RankPart& part, ranks::Rank* out);

 private:
  void FillSpent(const DeviceRank& device, const std::vector<aggregate::Series>& series,
                 bool with_unclear, RankPart& part, ranks::Rank* out);
  uint32_t KindOf(RankPart& part, const DeviceCollective& one, uint32_t api);
  uint32_t CauseOf(RankPart& part, const aggregate::Series& idle);

  LateCauses& causes_;
  // Communicators, and collectives that are alike: a job has few of both.
  std::map<uint64_t, uint32_t> groups_;
  std::map<std::tuple<uint64_t, std::string, uint32_t>, uint32_t> kinds_;
};

}  // namespace lull::query
