// A rank by what its device did, as the rules for late ranks want it (docs/ranks.md).
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/aggregate/series.h"
#include "daemon/query/device_rank.h"
#include "daemon/query/late_causes.h"
#include "daemon/ranks/by_ends.h"
#include "daemon/ranks/ranks.h"

namespace lull::query {

// A device's clock against its host's, at most (preload/cupti/clock.h,
// docs/gpu_results.md).
inline constexpr uint64_t kDeviceTimeErrorNs = 5'000;

class DeviceWaits {
 public:
  explicit DeviceWaits(LateCauses& causes) : causes_(causes) {}

  // What the rank spent, and one wait for each of its kernels of communication that is
  // of a collective. Steps and looks are the caller's. All times are within `error_ns`.
  void Fill(const DeviceRank& device, const std::vector<aggregate::Series>& series,
            const std::vector<ranks::Ended>& kernels,
            const std::vector<ranks::Identity>& identities, uint64_t error_ns,
            RankPart& part, ranks::Rank* out);

 private:
  uint32_t CauseOf(RankPart& part, const aggregate::Series& idle);

  LateCauses& causes_;
};

}  // namespace lull::query
