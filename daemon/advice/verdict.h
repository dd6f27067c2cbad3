// One word for what a job is bound by: the largest cause of lost time that its host can
// change. All thresholds stand in verdict.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "query.pb.h"

namespace lull {

inline constexpr size_t kCauses = v1::GapCause_ARRAYSIZE;

// Where the traced time of all devices went.
struct TimeShares {
  uint64_t traced_ns = 0;
  uint64_t busy_ns = 0;
  uint64_t kernel_ns = 0;                      // of busy: kernels and graphs
  uint64_t communication_ns = 0;               // of these: NCCL's kernels, added up
  std::array<uint64_t, kCauses> idle_ns = {};  // by GapCause
};

// "compute", "launch", "sync", "data", "communication", "host",
// "copy"; "" when nothing stands
// out, or nothing was traced.
std::string Verdict(const TimeShares& shares);

}  // namespace lull
